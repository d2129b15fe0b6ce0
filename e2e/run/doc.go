// Command run is `make run`: it starts an adapter with its own store and an
// exporter of this machine that pushes to it, says where the page is, and stops
// both again.
//
// In: flags that the Makefile passes, and Ctrl-C. Out: both programs' logs on
// standard error, the page's address on standard output, and an exit status that
// is not zero when either program ended by itself. It leaves nothing running.
package main
