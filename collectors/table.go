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
// that vanishes and returns is the same row. Only one without series, which a filter
// leaves out or which never moved, is forgotten when it vanishes: on a machine with
// containers interfaces come and go for ever.
type table[R any] struct {
	keys
	rows []*entry[R]
}

type entry[R any] struct {
	rowKey
	row R
}

// keys is what a table knows of its rows whatever they are made of: the compiler makes
// a copy of what is generic for every kind of row, so that little is.
type keys struct {
	max   int // rows with series, over the life of the table
	all   []*rowKey
	index map[string]int32
	free  []int32 // places of rows that were forgotten
	order []int32 // rows in the order of the last read
	pos   int     // rows of this read so far
	live  int     // rows of the last read
	gen   uint32  // number of this read
}

type rowKey struct {
	key  string
	gen  uint32 // the read that saw it last
	live bool
}

func newTable[R any](max int) *table[R] {
	return &table[R]{keys: newKeys(max)}
}

func newKeys(max int) keys { return keys{max: max, index: make(map[string]int32)} }

// begin starts a read.
func (t *keys) begin() { t.gen++; t.pos = 0 }

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
	i, state := t.look(key)
	switch state {
	case rowTwice, rowOver:
		return nil, state
	case rowNew:
		e := &entry[R]{}
		if int(i) < len(t.rows) {
			t.rows[i] = e
		} else {
			t.rows = append(t.rows, e)
		}
		t.add(i, &e.rowKey, key)
	}
	return &t.rows[i].row, state
}

// takeExpected marks the row that expected returned as seen.
func (t *table[R]) takeExpected() (*R, rowState) {
	i := t.order[t.pos]
	state := t.take(i)
	if state == rowTwice {
		return nil, state
	}
	return &t.rows[i].row, state
}

// look finds the place of a key and marks it as seen. One that is new has the next
// place, and is to be added.
func (t *keys) look(key []byte) (int32, rowState) {
	if t.pos < len(t.order) {
		if i := t.order[t.pos]; t.all[i].key == string(key) {
			return i, t.take(i)
		}
	}
	if i, ok := t.index[string(key)]; ok {
		return i, t.take(i)
	}
	switch n := len(t.free); {
	case n > 0:
		return t.free[n-1], rowNew
	case len(t.all) >= t.max:
		return -1, rowOver
	}
	return int32(len(t.all)), rowNew
}

// add takes a new row in, seen, at the place that look gave it.
func (t *keys) add(i int32, k *rowKey, key []byte) {
	k.key = string(key)
	if int(i) < len(t.all) {
		t.all[i] = k
		t.free = t.free[:len(t.free)-1]
	} else {
		t.all = append(t.all, k)
	}
	t.index[k.key] = i
	t.take(i)
}

func (t *keys) take(i int32) rowState {
	k := t.all[i]
	if k.gen == t.gen {
		return rowTwice
	}
	state := rowBack
	if k.live {
		state = rowSame
	}
	k.gen, k.live = t.gen, true
	if t.pos < len(t.order) {
		t.order[t.pos] = i
	} else {
		t.order = append(t.order, i)
	}
	t.pos++
	if state == rowBack {
		t.live++
	}
	return state
}

// end finishes a read and calls gone for each row that was there at the last read
// and is not now.
func (t *table[R]) end(gone func(*R)) {
	if !t.finish() {
		return
	}
	for i, k := range t.all {
		if k.live && k.gen != t.gen {
			k.live = false
			r := &t.rows[i].row
			gone(r)
			if u, ok := any(r).(interface{ seriesless() bool }); ok && u.seriesless() {
				t.forget(int32(i))
			}
		}
	}
}

// forget makes the place of a row free.
func (t *keys) forget(i int32) {
	delete(t.index, t.all[i].key)
	t.free = append(t.free, i)
}

// finish finishes a read and tells whether rows are gone.
func (t *keys) finish() bool {
	t.order = t.order[:t.pos]
	gone := t.live != t.pos
	t.live = t.pos
	return gone
}
