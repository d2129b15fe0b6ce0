package collectors

import "hash/maphash"

// matrixMemo is what is known of the last read's lines, so that those that are the
// same, most of them, need not be parsed.
type matrixMemo struct {
	seed   maphash.Seed
	lines  []matrixLine
	whole  bool   // every line is here, and none was odd
	clears uint64 // of Out then
}

type matrixLine struct {
	hash   uint64
	pos    int32 // rows before it
	hidden bool
}

// all parses every line.
func (m *matrix) all(out *Out, text []byte) {
	if m.memo.lines == nil {
		m.memo.seed = maphash.MakeSeed()
	}
	m.memo.lines = m.memo.lines[:0]
	odd, hidden := out.oddities(), uint64(0)
	m.rows.begin()
	for len(text) > 0 {
		line, rest, whole := cutLine(text)
		text = rest
		l := matrixLine{hash: maphash.Bytes(m.memo.seed, line), pos: int32(m.rows.pos)}
		if l.hidden = m.row(out, line, whole); l.hidden {
			hidden++
		}
		m.memo.lines = append(m.memo.lines, l)
	}
	out.Stats.Hidden.Store(hidden)
	m.rows.end(func(r *matrixRow) { r.clear(out) })
	m.memo.whole, m.memo.clears = odd == out.oddities(), out.clears
}

// again parses the lines that are not the same as at the last read, if there are as
// many and each is still the same row. If not, the file is to be parsed as a whole.
func (m *matrix) again(out *Out, text []byte) bool {
	if m.memo.clears != out.clears {
		return false
	}
	lines, hidden, rows := m.memo.lines, uint64(0), m.rows.live
	m.rows.begin()
	i := 0
	for ; len(text) > 0; i++ {
		line, rest, whole := cutLine(text)
		text = rest
		if i == len(lines) || !whole {
			return false
		}
		l := &lines[i]
		if h := maphash.Bytes(m.memo.seed, line); h != l.hash {
			next := rows
			if i+1 < len(lines) {
				next = int(lines[i+1].pos)
			}
			if !m.changed(out, line, l, next) {
				return false
			}
			l.hash = h
		}
		if l.hidden {
			hidden++
		}
	}
	out.Stats.Hidden.Store(hidden)
	return i == len(lines)
}

// changed parses a line again and tells whether it is the row that it was. next is how
// many rows there were after it.
func (m *matrix) changed(out *Out, line []byte, l *matrixLine, next int) bool {
	bad, overflow := out.Stats.BadRows.Load(), out.Stats.Overflow.Load()
	m.rows.pos = int(l.pos)
	was := int32(-1)
	if next > m.rows.pos {
		was = m.rows.order[m.rows.pos]
	}
	l.hidden = m.row(out, line, true)
	if out.Stats.BadRows.Load() != bad || out.Stats.Overflow.Load() != overflow {
		out.Stats.BadRows.Store(bad) // it is counted when all is parsed
		out.Stats.Overflow.Store(overflow)
		return false
	}
	return m.rows.pos == next && (was < 0 || m.rows.order[l.pos] == was)
}
