package collectors

import "hash/maphash"

// lineSlots remembers which series the lines of a file are that have a name and a
// number each, so that a file with the same names is read without asking a table for
// every line. A table's rows lie all over the memory, and between two ticks other
// programs use the caches.
type lineSlots struct {
	seed  maphash.Seed
	lines []lineSlot
	odd   uint64
	whole bool // every line of the last read is here, and none was odd
}

type lineSlot struct {
	name uint64 // hash
	slot int32  // slot + 1; 0 is not exported
}

// begin starts a read that goes through the table.
func (l *lineSlots) begin(out *Out) {
	if l.lines == nil {
		l.seed, l.lines = maphash.MakeSeed(), []lineSlot{}
	}
	l.lines, l.whole, l.odd = l.lines[:0], false, out.oddities()
}

// add is the next line of it.
func (l *lineSlots) add(name []byte, slot int32) {
	l.lines = append(l.lines, lineSlot{maphash.Bytes(l.seed, name), slot})
}

// end finishes it.
func (l *lineSlots) end(out *Out) { l.whole = l.odd == out.oddities() }

// again sets all series, if the lines have the names of the last read and good
// numbers. If not, some may be set already.
func (l *lineSlots) again(out *Out, text []byte) bool {
	if !l.whole {
		return false
	}
	i := 0
	for len(text) > 0 {
		var line []byte
		line, text, _ = cutLine(text)
		start, end := field(line, 0)
		if start == end {
			continue
		}
		if i == len(l.lines) || l.lines[i].name != maphash.Bytes(l.seed, line[start:end]) {
			return false
		}
		if slot := l.lines[i].slot; slot > 0 {
			v, _, f := number(line, end)
			if f != good {
				return false
			}
			out.Set(int(slot-1), int64(v))
		}
		i++
	}
	return i == len(l.lines)
}
