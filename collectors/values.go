package collectors

import (
	"fmt"
	"math"
)

// signedNumber reads the decimal field at or after i, which may be negative.
func signedNumber(b []byte, i int) (v int64, next int, f found) {
	start, _ := field(b, i)
	negative := start < len(b) && b[start] == '-'
	if negative {
		start++
		if start < len(b) && blank(b[start]) {
			return 0, start, bad
		}
	}
	u, next, f := number(b, start)
	switch {
	case negative && f == none, f == good && u > math.MaxInt64:
		return 0, next, bad
	case negative:
		return -int64(u), next, f
	}
	return int64(u), next, f
}

// valueFile is a file of one number, as sysfs and sysctl have them, and the series
// it fills. The metric's Kind must be Signed.
type valueFile struct {
	*file
	metric *Metric
	labels []Label
	slot   int32 // slot + 1
}

// newValueFile does not need the file to be there yet.
func newValueFile(path string, m *Metric, labels ...Label) *valueFile {
	return &valueFile{file: laterFile(path, 64, true), metric: m, labels: labels}
}

// read sets the series, or clears it when there is no number.
func (v *valueFile) read(out *Out) error {
	n, err := v.number(out)
	if err != nil {
		v.clear(out)
		return err
	}
	v.set(out, n)
	return nil
}

func (v *valueFile) number(out *Out) (int64, error) {
	text, err := v.readInto(out)
	if err != nil {
		return 0, err
	}
	n, ok := parseValue(text)
	if !ok {
		return 0, fmt.Errorf("read %s: not one number", v.path)
	}
	return n, nil
}

// parseValue reads a text that is one number.
func parseValue(text []byte) (int64, bool) {
	text = trim(text)
	n, next, f := signedNumber(text, 0)
	return n, f == good && next == len(text)
}

func (v *valueFile) set(out *Out, n int64) {
	if v.slot == 0 {
		v.slot = int32(out.Add(v.metric, v.labels...)) + 1
	}
	out.Set(int(v.slot-1), n)
}

func (v *valueFile) clear(out *Out) {
	if v.slot > 0 {
		out.Clear(int(v.slot - 1))
	}
}
