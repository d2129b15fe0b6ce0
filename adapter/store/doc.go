// Package store owns what the adapter keeps on disk and is the only package that
// imports the Prometheus TSDB. Raw is the TSDB with raw samples; Buckets is one
// folded tier: buckets in memory until their block is cut, then blocks in Thanos'
// layout (FORMAT.md).
//
// It decides neither what to fold nor when (adapter/tier does), nor which tier a
// query reads (adapter/query does).
package store
