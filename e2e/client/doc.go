// Package client talks to whatever answers the Prometheus HTTP API or takes remote
// write, in the few ways that the end-to-end tests and the load run need.
//
// In: a base URL. Out: plain values, with times as Unix milliseconds. The remote
// write messages are built with Prometheus' own generated code and the answers are
// decoded here, so that nothing of ours checks itself. It keeps no state but its
// HTTP connections and is safe for concurrent use.
package client
