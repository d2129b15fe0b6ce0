// Package listen takes connections, as many as the process has descriptors for, and
// cuts those that do not go on.
//
// In comes a net.Listener; out go a net.Listener and a handler for an http.Server.
// Connections beyond the bound are answered 503 and closed; one whose peer does not
// take what is written is cut; one that is old is closed after an answer, so that peers
// spread over several adapters anew.
//
// It never reads a request, and never waits for a peer while it accepts.
package listen
