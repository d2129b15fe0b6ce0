// Package e2e holds the end-to-end tests: they start the built programs and the
// real peers (Prometheus, VictoriaMetrics, node_exporter, a browser), drive them
// over HTTP and look at what comes back.
//
// In: the paths of the programs, from the environment that `make e2e` sets; what
// is missing there is built on first use. Out: test results. The package never
// imports the exporter or the adapter: what it knows of them is their flags, their
// log lines and their HTTP interfaces, as a user does.
package e2e
