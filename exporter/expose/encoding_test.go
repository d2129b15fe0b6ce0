package expose

import (
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// TestEncoding: of what is asked for, what is preferred; zstd only in a build that has
// it, and never for a star.
func TestEncoding(t *testing.T) {
	for accept, want := range map[string]struct{ without, with string }{
		"":                            {"", ""},
		"zstd":                        {"", "zstd"},
		"zstd, gzip":                  {"gzip", "zstd"},
		"gzip, zstd":                  {"gzip", "zstd"},
		"gzip;q=1, zstd;q=0.5":        {"gzip", "gzip"},
		"gzip;q=0.5, zstd;q=1":        {"gzip", "zstd"},
		"gzip;q=0, zstd":              {"", "zstd"},
		"zstd;q=0, gzip":              {"gzip", "gzip"},
		"*":                           {"gzip", "gzip"},
		"identity, gzip;q=0.5":        {"", ""},
		"identity;q=0.2, gzip;q=0.5":  {"gzip", "gzip"},
		"x-gzip":                      {"gzip", "gzip"},
		"br, deflate":                 {"", ""},
		"zstd;q=nonsense, gzip;q=0.1": {"gzip", "gzip"},
	} {
		w := want.without
		if hasZstd {
			w = want.with
		}
		if got := encoding([]string{accept}); got != w {
			t.Errorf("Accept-Encoding %q: %q, want %q", accept, got, w)
		}
	}
}

// TestZstd: whoever asks for zstd first gets what it can read.
func TestZstd(t *testing.T) {
	m := sampleMachine()
	for _, h := range []struct{ name, path string }{{"metrics", "/metrics"}, {"samples", "/api/v1/samples"}} {
		handler := m.handler(t, false)
		if h.name == "samples" {
			handler = newHistory().handler(t)
		}
		want := body(t, get(t, handler, h.path))
		resp := get(t, handler, h.path, "Accept-Encoding", "zstd, gzip;q=0.9")
		var r io.Reader
		var err error
		switch enc := resp.Header.Get("Content-Encoding"); {
		case enc == "zstd" && hasZstd:
			r, err = zstd.NewReader(resp.Body, zstd.WithDecoderConcurrency(1))
		case enc == "gzip" && !hasZstd:
			r, err = gzip.NewReader(resp.Body)
		default:
			t.Fatalf("%s: Content-Encoding %q", h.name, enc)
		}
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, string(got)); d != "" {
			t.Errorf("%s: %s", h.name, d)
		}
	}
}
