// Package page serves the adapter's page on /: the devices that push and their CPU
// over the last minutes.
//
// In come names of devices, for browsers without scripts; out go one HTML document
// and its assets, all from the binary. What moves on the page is fetched by the
// browser from the adapter's own API.
//
// It never queries the store, and it puts a client's words into a document only
// through html/template or, in the browser, as text.
package page
