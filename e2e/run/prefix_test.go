package main

import (
	"strings"
	"sync"
	"testing"
)

func TestPrefixer(t *testing.T) {
	var out strings.Builder
	var mu sync.Mutex
	a, b := &prefixer{name: "one", w: &out, mu: &mu}, &prefixer{name: "two", w: &out, mu: &mu}
	for _, w := range []struct {
		p    *prefixer
		text string
	}{{a, "first "}, {b, "other\nmore\n"}, {a, "line\nun"}, {a, "finished"}} {
		if n, err := w.p.Write([]byte(w.text)); n != len(w.text) || err != nil {
			t.Fatalf("%d, %v", n, err)
		}
	}
	if want := "two | other\ntwo | more\none | first line\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}
