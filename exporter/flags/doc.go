// Package flags reads a program's configuration from its command line and its
// environment. In: structs whose fields say in their tags what flag they are, an
// argument list, an environment. Out: the fields, filled in, and a help text.
//
// It never reads os.Args, writes nothing but what Help is asked for, and checks no
// more than that a value is of its type. It calls no method by its name: that would
// keep every method of every type in the program (docs/decisions/0008).
package flags
