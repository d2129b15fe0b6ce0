package receive

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/golang/snappy"
	"github.com/prometheus/prometheus/storage"
)

// failingStore fails a commit.
type failingStore struct {
	*fakeStore
	commits, fail int // commit number fail fails, counted from 1
}

type failingAppender struct {
	storage.AppenderV2
	s *failingStore
}

func (s *failingStore) AppenderV2(ctx context.Context) storage.AppenderV2 {
	return &failingAppender{s.fakeStore.AppenderV2(ctx), s}
}

func (a *failingAppender) Commit() error {
	if a.s.commits++; a.s.commits == a.s.fail {
		return errors.Join(errors.New("the disk is on fire"), a.AppenderV2.Rollback())
	}
	return a.AppenderV2.Commit()
}

// TestManySeries: a request of many series is committed in pieces, and whatever goes
// wrong later, what is told to be written is.
func TestManySeries(t *testing.T) {
	const n = 2*commitEvery + 10
	body := func() []byte {
		b := newBuilder()
		for i := range n {
			b.sample(0, 1, "__name__", fmt.Sprintf("m%d", i))
		}
		return marshal(t, b.request())
	}()
	for _, tc := range []struct {
		name         string
		body         []byte
		fail         int
		status, want int
		commits      int
		text         string
	}{
		{"all good", body, 0, 204, n, 3, ""},
		{"the first commit fails", body, 1, 503, 0, 1, "fire"},
		{"the second commit fails", body, 2, 503, commitEvery, 2, "2500 samples, 0 histograms and 0 exemplars are stored"},
		{"the last series is malformed", append(body[:len(body):len(body)], 5<<3|wireBytes, 1, 0xff), 0, 400, 2 * commitEvery, 2, "5000 samples"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := &failingStore{fakeStore: &fakeStore{}, fail: tc.fail}
			h := testHandler(t, s.fakeStore, func(c *Config) { c.Store = s })
			w := post(h, type2, snappy.Encode(nil, tc.body))
			if w.Code != tc.status || !strings.Contains(w.Body.String(), tc.text) {
				t.Errorf("status %d: %s", w.Code, w.Body)
			}
			if got := len(s.take()); got != tc.want || written(w) != fmt.Sprintf("%d/0/0", got) {
				t.Errorf("%d samples are stored, want %d, %s are told", got, tc.want, written(w))
			}
			if s.commits != tc.commits {
				t.Errorf("%d commits, want %d", s.commits, tc.commits)
			}
		})
	}
}
