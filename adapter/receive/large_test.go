package receive

import (
	"strings"
	"testing"
	"time"

	"github.com/golang/snappy"
)

func TestLarge(t *testing.T) {
	l := &large{most: 8 << 20}
	a := l.take(3<<20, testNow)
	if cap(a) != 4<<20 || len(a) != 0 {
		t.Fatalf("a buffer of %d", cap(a))
	}
	a = append(a, 1)
	l.put(a, testNow)
	if b := l.take(2<<20, testNow); &b[:1][0] != &a[0] || len(b) != 0 {
		t.Error("the buffer is not used again")
	}
	l.put(a, testNow)
	l.put(l.take(1, testNow), testNow) // takes a, and gives it back
	l.put(make([]byte, 0, 4<<20), testNow)
	l.put(make([]byte, 0, 2<<20), testNow) // there is no room for it
	if l.bytes != 8<<20 || len(l.free) != 2 {
		t.Errorf("%d bytes in %d buffers are kept", l.bytes, len(l.free))
	}
	l.put(make([]byte, 0, 8<<20), testNow) // in place of both
	if l.bytes != 8<<20 || len(l.free) != 1 {
		t.Errorf("%d bytes in %d buffers are kept", l.bytes, len(l.free))
	}
	l.put(make([]byte, 0, 16<<20), testNow)
	if l.bytes != 8<<20 {
		t.Errorf("%d bytes are kept", l.bytes)
	}
	l.settle(testNow.Add(keepLarge))
	if len(l.free) != 1 {
		t.Error("given up too early")
	}
	l.settle(testNow.Add(keepLarge + time.Second))
	if len(l.free) != 0 || l.bytes != 0 {
		t.Error("not given up")
	}
}

// TestBombsShareBuffers: requests of the largest size, one after another, take the
// memory of one.
func TestBombsShareBuffers(t *testing.T) {
	h := testHandler(t, &fakeStore{})
	bomb := snappy.Encode(nil, make([]byte, 16<<20))
	post(h, type2, bomb)
	before := len(h.large.free)
	if n := testing.AllocsPerRun(3, func() { post(h, type2, bomb) }); n > 500 {
		t.Errorf("%v allocations for a bomb", n)
	}
	if len(h.large.free) != before || before == 0 {
		t.Errorf("%d large buffers after the first, %d after more", before, len(h.large.free))
	}
}

func TestTooManySeries(t *testing.T) {
	h := testHandler(t, &fakeStore{})
	w := post(h, type1, snappy.Encode(nil, []byte(strings.Repeat("\x0a\x00", maxRequestSeries+1))))
	if w.Code != 413 || !strings.Contains(w.Body.String(), "more than") {
		t.Errorf("status %d: %s", w.Code, w.Body)
	}
}
