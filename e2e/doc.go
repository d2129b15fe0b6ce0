// Package e2e holds the end-to-end tests: they start the built programs and the
// real peers (Prometheus, VictoriaMetrics, node_exporter, a browser), drive them
// over HTTP and look at what comes back.
//
// In: the paths of the programs, from the environment that `make e2e` sets; what
// is missing there is built on first use. Out: test results. The package never
// imports the exporter or the adapter: what it knows of them is their flags, their
// log lines and their HTTP interfaces, as a user does.
//
// What the main job promises, and where it is shown:
//   - `make run`, every tick stored, values as in /proc: makerun_test.go
//   - real Prometheus scrapes without a complaint, promtool agrees: scrape_test.go
//   - remote write to and from real peers, same answers: remotewrite_test.go
//   - three tiers against an oracle, expiry, SIGKILL: tiers_test.go, tierskilled_test.go
//   - a receiver that is away for 30 s, nothing missing or doubled: outage_test.go
//   - outages with kills and power cuts, real receivers, full disks: delivery_test.go
//   - a clock that starts in 1970, is set and stepped; certificates then: clock_test.go
//   - bad input is named and harms nothing: badinput_test.go
//   - the same series as the real node_exporter: beside_test.go, trees_test.go, madetrees_test.go
//   - dead FUSE mounts, a hung sensor, lxcfs: hanging_test.go; a container's network: netns_test.go
//   - the page in a real browser: browser_test.go
//   - who may import whom: arch_test.go
package e2e
