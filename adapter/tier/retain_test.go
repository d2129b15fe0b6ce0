package tier

import (
	"math"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/ticktier/ticktier/adapter/store"
)

// bytesOf is a Raw that is as large as it says and frees what it is asked for, as far
// back as it was told to stay.
type bytesOf struct {
	Raw
	size, freed int64
	until       int64
}

func (b *bytesOf) Size() int64 { return b.size }

func (b *bytesOf) DropOver(bytes, t int64) int64 {
	b.until = t
	n := max(0, min(bytes, b.freed))
	b.size -= n
	return n
}

// Room is made by raw samples first, then by five-minute buckets, then by hours; what
// has to be kept stays whatever there is room for.
func TestShrink(t *testing.T) {
	b := newBench(t)
	a := labels.FromStrings("__name__", "a")
	for at := epoch; at < epoch+6*day; at += 10 * minute {
		b.push(a, sample{at, float64(at)})
		b.push(a, sample{at + 1, float64(at % 977)})
		if (at-epoch)%(2*hour) == 0 {
			b.now = at
			b.cycle()
		}
	}
	for range 10 {
		b.cycle()
	}
	raw := &bytesOf{Raw: b.raw, size: 1000, freed: 600}
	b.d.Raw, b.d.RawNeeds = raw, 28*time.Hour
	fine, coarse := b.fine.Size(), b.coarse.Size()
	now := min(b.raw.MaxTime(), b.now)

	b.d.MaxBytes = raw.size + fine + coarse
	b.cycle()
	if raw.size != 1000 || b.fine.Size() != fine || b.coarse.Size() != coarse {
		t.Error("something went though there was room")
	}
	b.d.MaxBytes -= 500
	b.cycle()
	if raw.size != 500 || b.fine.Size() != fine || b.coarse.Size() != coarse {
		t.Errorf("500 bytes of raw samples are left to go, %d did, and %d and %d of buckets", 1000-raw.size, fine-b.fine.Size(), coarse-b.coarse.Size())
	}
	if raw.until != now-28*hour {
		t.Errorf("raw samples stay %d hours back, want 28", (now-raw.until)/hour)
	}
	raw.freed = 0
	b.d.MaxBytes -= 10
	b.cycle()
	if b.fine.Size() >= fine || b.coarse.Size() != coarse {
		t.Errorf("five-minute buckets: %d of %d left, hours: %d of %d", b.fine.Size(), fine, b.coarse.Size(), coarse)
	}
	b.d.MaxBytes = 1
	b.cycle()
	if from := b.fine.MinTime(); from > now-48*hour || from == math.MaxInt64 {
		t.Errorf("five-minute buckets begin %d hours back, want 48 or more", (now-from)/hour)
	}
	if b.coarse.Size() == 0 || !b.d.tight {
		t.Error("all hours are gone, or nobody was told that there is too little room")
	}
	if _, ok := read(t, b.fine, store.Count)[a.String()]; !ok {
		t.Error("nothing is left to be read")
	}
}
