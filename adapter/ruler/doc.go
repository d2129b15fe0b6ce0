// Package ruler evaluates recording and alerting rules over the adapter's samples.
//
// It owns Prometheus' rule manager and its notifier. In come rule files, found by
// patterns and read again on request, and the answers of a query engine; out go the
// results of rules, ALERTS and ALERTS_FOR_STATE as ordinary samples, and alerts to
// Alertmanagers. How long an alert has been pending survives a restart, because it is
// read back from those samples.
//
// Recording rules are evaluated again over times for which samples came late. An alert
// whose device is silent goes on.
//
// It never lets a bad rule file stop anything: the last good set stays, and what is
// wrong is said. It never answers queries.
package ruler
