package collectors

// rowState says what a table knows of the row it was asked for.
type rowState uint8

const (
	rowSame  rowState = iota // was there at the last read too
	rowNew                   // never seen before
	rowBack                  // was there once, then gone, now back
	rowTwice                 // already seen in this read
	rowOver                  // new, but the table is full
)

// table finds the rows of a kernel file again by their key. Kernels print rows in
// a steady order, so the row that followed last time is tried first and a map only
// asked when it does not fit. A row keeps its place, and so its slots, for ever: one
// that vanishes and returns is the same row.
type table[R any] struct {
	max   int // rows, over the life of the table
	rows  []*entry[R]
	index map[string]int32
	order []int32 // rows in the order of the last read
	pos   int     // rows of this read so far
	live  int     // rows of the last read
	gen   uint32  // number of this read
}

type entry[R any] struct {
	key  string
	gen  uint32 // the read that saw it last
	live bool
	row  R
}

func newTable[R any](max int) *table[R] {
	return &table[R]{max: max, index: make(map[string]int32)}
}

// begin starts a read.
func (t *table[R]) begin() { t.gen++; t.pos = 0 }

// expected is the row that followed at this place last time, or nil.
func (t *table[R]) expected() *entry[R] {
	if t.pos < len(t.order) {
		return t.rows[t.order[t.pos]]
	}
	return nil
}

// find returns the row of that key, made if need be. It is nil when the row is
// there twice or the table is full. key is copied only for a new row.
func (t *table[R]) find(key []byte) (*R, rowState) {
	if e := t.expected(); e != nil && e.key == string(key) {
		return t.take(e, t.order[t.pos])
	}
	if i, ok := t.index[string(key)]; ok {
		return t.take(t.rows[i], i)
	}
	if len(t.rows) >= t.max {
		return nil, rowOver
	}
	e := &entry[R]{key: string(key)}
	i := int32(len(t.rows))
	t.rows = append(t.rows, e)
	t.index[e.key] = i
	r, _ := t.take(e, i)
	return r, rowNew
}

// takeExpected marks the row that expected returned as seen.
func (t *table[R]) takeExpected() (*R, rowState) {
	i := t.order[t.pos]
	return t.take(t.rows[i], i)
}

func (t *table[R]) take(e *entry[R], i int32) (*R, rowState) {
	if e.gen == t.gen {
		return nil, rowTwice
	}
	state := rowBack
	if e.live {
		state = rowSame
	}
	e.gen, e.live = t.gen, true
	if t.pos < len(t.order) {
		t.order[t.pos] = i
	} else {
		t.order = append(t.order, i)
	}
	t.pos++
	if state == rowBack {
		t.live++
	}
	return &e.row, state
}

// end finishes a read and calls gone for each row that was there at the last read
// and is not now.
func (t *table[R]) end(gone func(*R)) {
	t.order = t.order[:t.pos]
	if t.live == t.pos {
		return
	}
	for _, e := range t.rows {
		if e.live && e.gen != t.gen {
			e.live = false
			gone(&e.row)
		}
	}
	t.live = t.pos
}
