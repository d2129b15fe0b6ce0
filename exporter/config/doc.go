// Package config is the exporter's configuration: its fields, their defaults, and
// what may be wrong with them, named by flag. Reading flags and environment is
// main's.
package config
