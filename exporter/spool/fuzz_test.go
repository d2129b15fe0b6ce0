package spool

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// FuzzSegment starts on a directory whose one segment is any bytes.
func FuzzSegment(f *testing.F) {
	dir := f.TempDir()
	w := begin(f, dir, "one", nil, "a")
	w.sample(3)
	w.grow(3)
	w.sample(2)
	w.stop()
	list, err := names(disk{}, dir)
	if err != nil || len(list) != 1 {
		f.Fatalf("%v, %v", list, err)
	}
	b, err := os.ReadFile(filepath.Join(dir, list[0]))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b, true)
	f.Add(b[:len(b)/2], false)
	f.Add(b[:headerLen], true)
	f.Add(append(slices.Clone(b), make([]byte, 100)...), false)
	f.Fuzz(func(t *testing.T, b []byte, mend bool) {
		if mend {
			mendSums(b)
		}
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, segmentName(1)), b, 0o600); err != nil {
			t.Fatal(err)
		}
		w := begin(t, dir, "two", func(c *Config) { c.fs = newCrashFS(1, 1<<30) }, "a")
		e := w.sp.Earlier(0)
		last := uint64(0)
		for n := 0; e.Next(); n++ {
			if s := e.Tick().Seq; n > 0 && s <= last {
				t.Fatalf("tick %d after %d", s, last)
			}
			last = e.Tick().Seq
			if len(e.Series()) < len(e.Tick().Values) {
				t.Fatalf("%d series for %d slots", len(e.Series()), len(e.Tick().Values))
			}
			e.Passed(e.Epoch(), last+1)
		}
		w.kill()
		verify(t, dir)
	})
}

// mendSums makes the checksums right, so that what is behind them is tried too.
func mendSums(b []byte) {
	if len(b) < headerLen {
		return
	}
	var h header
	h, _ = parseHeader(b)
	copy(b, (&header{number: 1, epoch: max(h.epoch, 1), session: "x"}).append(nil))
	for at := headerLen; at+headLen <= len(b); {
		n := int(b[at+4]) | int(b[at+5])<<8 | int(b[at+6])<<16
		b[at+7] = 0
		if at+headLen+n > len(b) {
			return
		}
		endRecord(b[:at+headLen+n], at)
		at += headLen + n
	}
}

func FuzzPosition(f *testing.F) {
	p := position{epoch: 3, seq: 1200, ahead: []Range{{4, 500, 900}}}
	f.Add(string(p.append(nil, "http://server/")))
	f.Add("ticktier-cursor 1\n")
	f.Fuzz(func(t *testing.T, s string) {
		p, receiver, err := parsePosition([]byte(s))
		if err != nil {
			return
		}
		q, again, err := parsePosition(p.append(nil, receiver))
		if err != nil || again != receiver || q.epoch != p.epoch || q.seq != p.seq || !slices.Equal(q.ahead, p.ahead) {
			t.Errorf("%+v, %q, %v", q, again, err)
		}
	})
}
