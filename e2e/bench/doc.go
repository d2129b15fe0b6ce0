// Command bench is the exporter's part of `make bench`: what a tick costs, beside
// what it cannot cost less than and beside node_exporter, on this machine and in one
// run.
//
// The floor is a program that does nothing but pread the files that the exporter
// keeps open, on the same schedule, each as often as the exporter reads it, with
// descriptors and buffers kept. It is this command itself, started with "floor".
//
// In: flags, the built exporter, real node_exporter where it is built, and /proc. Out:
// a table on standard output and, with -json, the same figures in a file. It fails on
// no figure: it says which are over their mark, where the machine was quiet enough to
// tell.
package main
