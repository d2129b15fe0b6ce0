// Package access says who may do what: which device a push is from, who may read, and
// who may administer.
//
// In come files (tokens, stored as hashes, and exporter-toolkit's web configuration)
// and the credentials of requests; out go an Entry for each push, and handlers that
// let others in or answer 401 or 403. Files are read again when they change; a file
// that is wrong changes nothing and is reported.
//
// It owns the formats of the token file (FORMAT.md) and edits it. It never stores a
// secret, and never puts one, or a part of one, into a log, a metric or an answer.
package access
