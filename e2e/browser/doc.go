// Package browser drives a headless Chromium for tests: it opens pages, runs scripts
// in them, presses keys, moves the mouse, takes pictures, and keeps what the console
// said and what was requested.
//
// It speaks the DevTools protocol over a pair of pipes, so it needs neither a port nor
// a library. It never waits a fixed time: whoever uses it waits for a state.
package browser
