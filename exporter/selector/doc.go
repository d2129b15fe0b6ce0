// Package selector reads series selectors as PromQL writes them, without a range,
// and tells which series they select. What comes in is text from whoever asks or
// configures; it never looks at values.
package selector
