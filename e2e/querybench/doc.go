// Command querybench is the queries' part of `make bench`: one device's nine series at
// once for 24 hours, 7, 30 and 90 days, as the page and a dashboard ask for them, from
// the built adapter over a made-up fleet, and from real Prometheus and VictoriaMetrics
// that hold the same raw samples for ever; and from an adapter that holds two years.
// First requests are timed with a new process alone, and with its files dropped from the
// kernel's cache too.
//
// The peers hold the first few devices of the fleet only: to give them all samples of
// all devices would take an hour. That is to their advantage.
//
// In: flags, the built adapter and the peers. Out: tables on standard output. It fails
// on no figure.
package main
