// Package ring keeps the newest ticks in memory within a fixed budget of bytes. It
// takes one tick after the other, encodes them into frames, and evicts the oldest
// whole frame when room is needed; what is evicted before it was delivered is
// counted with its time range. Readers follow at their own pace and are told what
// they missed.
//
// It has one writer and any number of readers. It never waits for a reader, takes
// no memory per tick, and knows neither the clock nor the schema.
package ring
