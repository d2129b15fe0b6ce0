// Package page serves the adapter's page on /: the fleet, one device from the last
// second to the last year, its live ticks, alerts and rules, and a query box.
//
// In come names of devices, for browsers without scripts; out go one HTML document
// and its assets, all from the binary. What moves on the page is fetched by the
// browser from the adapter's own API. It is written in modules that browsers load as
// they are; uPlot, which draws the charts, is kept as released, with its licence.
//
// It never queries the store, and it puts a client's words into a document only
// through html/template or, in the browser, as text.
package page
