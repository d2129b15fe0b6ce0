package config

import (
	"fmt"
	"strconv"
	"strings"
)

// Bytes is a size. It reads as a plain number or with KiB, MiB or GiB behind.
type Bytes int64

var units = [...]struct {
	suffix string
	factor Bytes
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}}

// UnmarshalText reads a size.
func (b *Bytes) UnmarshalText(text []byte) error {
	s := strings.TrimSpace(string(text))
	number, factor := s, Bytes(1)
	for _, u := range units {
		if n := len(s) - len(u.suffix); n > 0 && strings.EqualFold(s[n:], u.suffix) {
			number, factor = strings.TrimSpace(s[:n]), u.factor
			break
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 0 || n > int64(1<<62)/int64(factor) {
		return fmt.Errorf("%q is no size: a number is expected, with KiB, MiB or GiB behind or nothing", s)
	}
	*b = Bytes(n) * factor
	return nil
}

// String is the size in the largest unit that leaves it whole.
func (b Bytes) String() string {
	for _, u := range units {
		if b != 0 && b%u.factor == 0 {
			return strconv.FormatInt(int64(b/u.factor), 10) + u.suffix
		}
	}
	return strconv.FormatInt(int64(b), 10)
}
