package backfill

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What is stored is what the adapter says, not what was sent.
func TestRemotePush(t *testing.T) {
	status, written, body := 204, "2", ""
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if written != "" {
			w.Header().Set(writtenHeader, written)
		}
		http.Error(w, body, status)
	}))
	defer srv.Close()
	r := &Remote{URL: srv.URL, Client: srv.Client()}
	list := some()
	n := int64(0)
	for _, s := range list {
		n += int64(len(s.T))
	}
	for _, tc := range []struct {
		status        int
		written, body string
		want          Pushed
		fails         bool
	}{
		{204, "", "", Pushed{Stored: n}, false},
		{400, "0", "too old", Pushed{Refused: n, Why: "too old"}, false},
		{400, "1", "one is too old", Pushed{Stored: 1, Refused: n - 1, Why: "one is too old"}, false},
		{400, "", "no write path", Pushed{}, true},
		{401, "", "who are you", Pushed{}, true},
		{503, "1", "full", Pushed{Stored: 1}, true},
	} {
		status, written, body = tc.status, tc.written, tc.body
		got, err := r.Push(context.Background(), list)
		if diff := cmp.Diff(tc.want, got); diff != "" || (err != nil) != tc.fails {
			t.Errorf("%d with %q written: %v (-want +got):\n%s", tc.status, tc.written, err, diff)
		}
	}
}
