package collectors

import (
	"bytes"
)

// onlineCPUs maps the n-th row of a file that has one row for each CPU that is
// online, and does not say which, to the CPU's id. It looks at the kernel's list
// again when the number of rows changes; without a list that fits, the id is the
// number of the row.
type onlineCPUs struct {
	path string
	rows int
	ids  []int
}

// expect tells how many rows the file has now.
func (o *onlineCPUs) expect(rows int) {
	if rows == o.rows {
		return
	}
	o.rows = rows
	o.ids = o.ids[:0]
	list, err := ReadFile(o.path)
	if err != nil {
		return
	}
	o.ids = cpuList(list)
	if len(o.ids) != rows {
		o.ids = o.ids[:0]
	}
}

func (o *onlineCPUs) id(row int) int {
	if row < len(o.ids) {
		return o.ids[row]
	}
	return row
}

// cpuList reads a list like "0-3,5". What it cannot read gives no list.
func cpuList(list []byte) []int {
	var ids []int
	for part := range bytes.SplitSeq(trim(list), []byte{','}) {
		first, last, ranged := bytes.Cut(part, []byte{'-'})
		from, n, f := number(first, 0)
		if f != good || n != len(first) {
			return nil
		}
		to := from
		if ranged {
			if to, n, f = number(last, 0); f != good || n != len(last) {
				return nil
			}
		}
		if to < from || to >= maxCPUs {
			return nil
		}
		for id := from; id <= to && len(ids) < maxCPUs; id++ {
			ids = append(ids, int(id))
		}
	}
	return ids
}

// countLines counts the lines of a text that hold anything.
func countLines(text []byte) int {
	n := 0
	for len(text) > 0 {
		var line []byte
		line, text, _ = cutLine(text)
		if len(trim(line)) > 0 {
			n++
		}
	}
	return n
}
