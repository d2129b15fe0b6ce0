package receive

import (
	"testing"

	"github.com/golang/snappy"
	"github.com/google/go-cmp/cmp"
)

// FuzzHandler: no message makes the handler panic, leave an appender open or claim
// what it did not store, and none spoils the next request.
func FuzzHandler(f *testing.F) {
	for _, raw := range seeds1(f) {
		f.Add(raw, false)
	}
	for _, raw := range seeds2(f) {
		f.Add(raw, true)
	}
	good1, good2 := encode(f, push1(2, 2, at(0), 1)), encode(f, push(2, 2, at(0), 1))
	s := &fakeStore{}
	h := testHandler(f, s)
	post(h, type1, good1)
	want1 := s.take()
	post(h, type2, good2)
	want2 := s.take()
	f.Fuzz(func(t *testing.T, raw []byte, second bool) {
		typ := type1
		if second {
			typ = type2
		}
		for _, body := range [][]byte{raw, snappy.Encode(nil, raw)} {
			w := post(h, typ, body)
			rows := len(s.take())
			switch w.Code {
			case 204:
			case 400, 413:
				if w.Body.Len() == 0 || w.Body.Len() > 8<<10 {
					t.Errorf("status %d with an answer of %d bytes", w.Code, w.Body.Len())
				}
			default:
				t.Fatalf("status %d: %s", w.Code, w.Body)
			}
			if w.Code == 413 && rows > 0 {
				t.Errorf("%d rows are stored of a request that is too large", rows)
			}
			if written(w) == "0/0/0" && rows > 0 {
				t.Errorf("%d rows are stored and none is claimed", rows)
			}
			if s.open != 0 {
				t.Fatal("an appender was left open")
			}
		}
		for typ, next := range map[string]struct {
			body []byte
			want []string
		}{type1: {good1, want1}, type2: {good2, want2}} {
			if w := post(h, typ, next.body); w.Code != 204 || written(w) != "4/0/0" {
				t.Fatalf("the next good request: status %d, written %s: %s", w.Code, written(w), w.Body)
			}
			if diff := cmp.Diff(next.want, s.take()); diff != "" {
				t.Fatalf("the next good request (-want +got):\n%s", diff)
			}
		}
	})
}
