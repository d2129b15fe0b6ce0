package expose

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/ticktier/ticktier/exporter/selector"
)

// matchParam is the only parameter that may be repeated.
const matchParam = "match[]"

const (
	defaultMax = 1000
	limitMax   = 100000
	// limitMatch bounds the selectors of a request: each is tried on every series.
	limitMatch = 64
)

// query is what a client asks for.
type query struct {
	since   uint64
	resume  bool // since was given
	session string
	max     int
	events  bool // of the stream: events too
	match   []selector.Selector
}

// parseQuery reads a request's parameters; an error names the one that is wrong. One
// that nobody knows is wrong, too: match for match[] would select everything.
func parseQuery(r *http.Request, known ...string) (*query, error) {
	q := &query{max: defaultMax}
	form, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, fmt.Errorf("the parameters cannot be read: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(form)) {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("parameter %q is not known here: it can be %s", name, strings.Join(known, ", "))
		}
		if name != matchParam && len(form[name]) > 1 {
			return nil, fmt.Errorf("%s is given %d times", name, len(form[name]))
		}
	}
	q.session = form.Get("session")
	if s := form.Get("since"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("since=%q is not a number", s)
		}
		q.since, q.resume = n, true
	}
	if s := form.Get("max"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 || n > limitMax {
			return nil, fmt.Errorf("max=%q is not a number from 1 to %d", s, limitMax)
		}
		q.max = n
	}
	switch s := form.Get("events"); s {
	case "", "false":
	case "true":
		q.events = true
	default:
		return nil, fmt.Errorf("events=%q is neither true nor false", s)
	}
	if len(form[matchParam]) > limitMatch {
		return nil, fmt.Errorf("match[]: more than %d selectors", limitMatch)
	}
	for _, s := range form[matchParam] {
		sel, err := selector.Parse(s)
		if err != nil {
			return nil, fmt.Errorf("match[]: %w", err)
		}
		q.match = append(q.match, sel)
	}
	return q, nil
}

// lastEvent takes since and session from the id of the last event that a client
// got before it lost the connection.
func (q *query) lastEvent(id string) error {
	if id == "" {
		return nil
	}
	session, seq, _ := strings.Cut(id, "/")
	n, err := strconv.ParseUint(seq, 10, 64)
	if err != nil || session == "" {
		return errors.New("Last-Event-ID is not an id of this stream")
	}
	q.session, q.since, q.resume = session, n, true
	return nil
}
