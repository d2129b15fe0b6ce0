// Command load is `make load`: it runs the built programs under load and prints
// what they cost. It gives no verdict; the machine that it ran on is printed before
// it by the Makefile.
//
// In: flags, the built programs, and real Prometheus where it is built. Out: one
// line per run on standard output.
package main
