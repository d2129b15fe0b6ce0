package collectors

import (
	"math"
	"testing"
)

func TestNumber(t *testing.T) {
	for _, test := range []struct {
		text string
		v    uint64
		next int
		f    found
	}{
		{"", 0, 0, none}, {" \t ", 0, 3, none}, {"0", 0, 1, good}, {"  12 x", 12, 4, good},
		{"18446744073709551615", math.MaxUint64, 20, good}, {"18446744073709551616", 0, 0, bad},
		{"18446744073709551620", 0, 0, bad}, {"99999999999999999999999", 0, 0, bad},
		{"00000000000000000000000000007", 7, 29, good},
		{"-1", 0, 0, bad}, {" 1x", 0, 1, bad}, {"x", 0, 0, bad}, {"1.5", 0, 0, bad}, {"7\r", 7, 1, good},
	} {
		v, next, f := number([]byte(test.text), 0)
		if v != test.v || next != test.next || f != test.f {
			t.Errorf("%q: got %d, %d, %d", test.text, v, next, f)
		}
	}
}

func TestHex(t *testing.T) {
	for _, test := range []struct {
		text string
		v    uint64
		f    found
	}{
		{"", 0, none}, {"00aF", 0xaf, good}, {"ffffffffffffffff", math.MaxUint64, good},
		{"10000000000000000", 0, bad}, {"0g", 0, bad}, {"000000000000000000001", 1, good}, {"12\t", 0x12, good},
	} {
		if v, _, f := hex([]byte(test.text), 0); v != test.v || f != test.f {
			t.Errorf("%q: got %d, %d", test.text, v, f)
		}
	}
}

func TestCutLine(t *testing.T) {
	line, rest, whole := cutLine([]byte("a\nb"))
	if string(line) != "a" || string(rest) != "b" || !whole {
		t.Errorf("got %q, %q, %v", line, rest, whole)
	}
	if line, rest, whole = cutLine(rest); string(line) != "b" || len(rest) != 0 || whole {
		t.Errorf("got %q, %q, %v", line, rest, whole)
	}
}
