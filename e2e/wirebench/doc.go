// Command wirebench measures what the samples of one machine cost on the wire and in
// CPU, sent by the exporter, by Prometheus' agent and by vmagent at the same time.
//
// It owns a receiver that counts, and the senders that it starts: the built exporter in
// several configurations, and the real peers that scrape another exporter ten times a
// second. Out comes a table. What the programs are told beyond their flags is nothing.
package main
