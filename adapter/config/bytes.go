package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Bytes is a number of bytes, given as 20GB, 512MiB or 1000000.
type Bytes int64

// sizes are the units, largest first.
var sizes = [...]struct {
	unit  string
	bytes int64
}{
	{"TiB", 1 << 40}, {"TB", 1e12}, {"GiB", 1 << 30}, {"GB", 1e9}, {"MiB", 1 << 20}, {"MB", 1e6}, {"KiB", 1 << 10}, {"kB", 1e3}, {"KB", 1e3}, {"B", 1},
}

// UnmarshalText reads them; kong calls it.
func (b *Bytes) UnmarshalText(text []byte) error {
	number, unit := strings.TrimSpace(string(text)), int64(1)
	for _, s := range sizes {
		if n, ok := strings.CutSuffix(number, s.unit); ok {
			number, unit = strings.TrimSpace(n), s.bytes
			break
		}
	}
	v, err := strconv.ParseFloat(number, 64)
	if v *= float64(unit); err != nil || v < 0 || v >= math.MaxInt64 || v != v {
		return fmt.Errorf("%q is not a size such as 20GB, 512MiB or 1000000", text)
	}
	*b = Bytes(v)
	return nil
}

// String is the size in the largest unit that divides it.
func (b Bytes) String() string {
	for _, s := range sizes {
		if b > 0 && int64(b)%s.bytes == 0 {
			return fmt.Sprintf("%d%s", int64(b)/s.bytes, s.unit)
		}
	}
	return strconv.FormatInt(int64(b), 10)
}
