// Package config is what the adapter can be told: one struct, its defaults and
// its checks. Flags and environment are read by main only.
package config
