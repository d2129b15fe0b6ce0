// Package tier drives the folds: it decides which windows are closed, folds raw
// samples into five-minute buckets and those into hours, folds again the windows
// that late samples touched, has blocks cut, drops what is past its retention,
// and says from when on raw samples may go.
//
// Samples and buckets live in adapter/store, the arithmetic in adapter/fold. It
// answers no query.
package tier
