// Package program starts one program as a child process, reads where it listens
// from its log, and stops it again.
//
// In: a path, arguments and where its log goes. Out: the address, the kept log and
// the exit. Every child is told to end when its parent dies, so that nothing is
// left running. The package knows nothing of what the programs do.
package program
