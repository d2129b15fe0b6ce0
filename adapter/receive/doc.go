// Package receive is the adapter's remote-write endpoint: an http.Handler for
// POST /api/v1/write that takes remote write 1.0 and 2.0.
//
// In come snappy-compressed protobuf messages; out go samples, native histograms
// and exemplars to a storage.AppendableV2, metadata to a bounded map, and one Push
// per request to an observer. It answers 2xx only for what is stored: the good part
// of a batch is stored and the bad part is answered with 400 and its reasons; an
// error of the store rolls the whole batch back and is answered with 503.
//
// Every byte is taken as hostile. Declared sizes are checked before memory is taken,
// and what concurrent requests hold is bounded by one budget for the handler.
//
// It never opens a store, never listens, and never trusts a client's time, label or
// header beyond the limits in limits.go.
package receive
