package receive

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/prometheus/model/labels"
)

// seriesOf are n series of a device, one sample each.
func seriesOf(from, n int, device string) *builder {
	b := newBuilder()
	for i := from; i < from+n; i++ {
		b.sample(0, 1, "__name__", fmt.Sprintf("m%d", i), "instance", device)
	}
	return b
}

func TestSeriesOfADevice(t *testing.T) {
	now := testNow
	s := &fakeStore{}
	h := testHandler(t, s, func(c *Config) {
		c.Quota.DeviceSeries = 3
		c.Now = func() time.Time { return now }
	})
	push := func(b *builder, status, stored int) {
		t.Helper()
		w := post(h, type2, encode(t, b.request()))
		if w.Code != status || written(w) != fmt.Sprintf("%d/0/0", stored) || len(s.take()) != stored {
			t.Fatalf("status %d and %s written, want %d and %d: %s", w.Code, written(w), status, stored, w.Body)
		}
		if status == 400 && !strings.Contains(w.Body.String(), "those it has are") {
			t.Errorf("the answer does not say why: %s", w.Body)
		}
	}
	push(seriesOf(0, 2, "a"), 204, 2)
	push(seriesOf(0, 5, "a"), 400, 3) // those it has, and one more
	push(seriesOf(0, 5, "a"), 400, 3) // again
	push(seriesOf(0, 3, "b"), 204, 3) // another device
	now = now.Add(seriesWindow)
	push(seriesOf(3, 1, "a"), 400, 0) // what it had still counts
	push(seriesOf(0, 1, "a"), 204, 1)
	now = now.Add(seriesWindow)
	push(seriesOf(3, 3, "a"), 400, 2) // two of the three were not seen for long
	push(seriesOf(0, 1, "a"), 204, 1)
	if got := counterValue(h.metrics.rejected[reasonSeriesLimit]); got != 6 {
		t.Errorf("%v refused elements are counted", got)
	}
}

func TestSeriesOfAll(t *testing.T) {
	db := openTSDB(t)
	held := func() int { return int(db.Head().NumSeries()) }
	config := func(c *Config) {
		c.Store = db
		c.Quota = Quota{Series: 4, DeviceSeries: 3, Held: held}
	}
	h := testHandler(t, &fakeStore{}, config)
	for _, step := range []struct {
		b              *builder
		status, claims int
	}{
		{seriesOf(0, 3, "a"), 204, 3},
		{seriesOf(0, 3, "b"), 400, 1},
		{seriesOf(0, 4, "a"), 400, 3},
	} {
		if w := post(h, type2, encode(t, step.b.request())); w.Code != step.status || claimed(t, w) != step.claims {
			t.Errorf("status %d, claims %d: %s", w.Code, claimed(t, w), w.Body)
		}
	}
	// After a restart, whatever comes first: what the store has goes on, and nothing new.
	h = testHandler(t, &fakeStore{}, config)
	if w := post(h, type2, encode(t, seriesOf(2, 4, "a").request())); w.Code != 400 || claimed(t, w) != 1 {
		t.Errorf("after a restart: status %d, claims %d: %s", w.Code, claimed(t, w), w.Body)
	}
}

func TestSamplesOfADevice(t *testing.T) {
	now := testNow
	s := &fakeStore{}
	h := testHandler(t, s, func(c *Config) {
		c.Quota.DeviceSamples = 10
		c.Now = func() time.Time { return now }
	})
	send := func(device string, n int) (status int, retry string) {
		w := post(h, type2, encode(t, seriesOf(0, n, device).request()))
		stored := len(s.take())
		if w.Code == http.StatusTooManyRequests && (stored > 0 || written(w) != "0/0/0") || w.Code == 204 && stored != n {
			t.Errorf("status %d, %d stored of %d", w.Code, stored, n)
		}
		return w.Code, w.Header().Get("Retry-After")
	}
	type answer struct {
		Status int
		Retry  string
	}
	var got []answer
	for _, step := range []struct {
		after  time.Duration
		device string
		n      int
	}{
		{0, "a", 150}, // ten seconds' worth is there, and one request may overdraw it
		{0, "a", 1},
		{0, "b", 100},
		{5 * time.Second, "a", 1}, // just even again
		{time.Second, "a", 20},
		{0, "a", 1},
		{time.Hour, "a", 100}, // no more than ten seconds' worth is saved
		{0, "a", 1},
	} {
		now = now.Add(step.after)
		status, retry := send(step.device, step.n)
		got = append(got, answer{status, retry})
	}
	want := []answer{{204, ""}, {429, "6"}, {204, ""}, {429, "1"}, {204, ""}, {429, "2"}, {204, ""}, {429, "1"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
	if got := testutil.ToFloat64(h.metrics.limited.WithLabelValues("device")); got != 4 {
		t.Errorf("%v requests are counted as over the limit", got)
	}
}

// TestSamplesOfAll: when too much comes, who sends no more than its share goes on.
func TestSamplesOfAll(t *testing.T) {
	now := testNow
	h := testHandler(t, &fakeStore{}, func(c *Config) {
		c.Quota.Samples = 100
		c.Now = func() time.Time { return now }
	})
	refused := map[string]int{}
	send := func(device string, n int) {
		if w := post(h, type2, encode(t, seriesOf(0, n, device).request())); w.Code == http.StatusTooManyRequests {
			refused[device]++
		} else if w.Code != 204 {
			t.Fatalf("status %d: %s", w.Code, w.Body)
		}
	}
	for range 60 {
		now = now.Add(time.Second)
		send("greedy", 500)
		send("a", 10)
		send("b", 10)
	}
	if refused["a"]+refused["b"] > 0 || refused["greedy"] < 30 {
		t.Errorf("refused: %v", refused)
	}
}

func TestAccountsAreBounded(t *testing.T) {
	a := newAccounts(Quota{DeviceSeries: 1})
	for i := range maxAccounts + 10 {
		if acc, _, _ := a.enter(fmt.Sprint(i), testNow); acc == nil {
			t.Fatal("refused")
		}
	}
	if n := len(a.byName); n > maxAccounts+1 {
		t.Errorf("%d accounts", n)
	}
	a.enter("later", testNow.Add(2*idleAccount))
	if n := len(a.byName); n != 1 {
		t.Errorf("%d accounts are left", n)
	}
}

func TestMaxLabels(t *testing.T) {
	s := &fakeStore{}
	h := testHandler(t, s, func(c *Config) {
		c.MaxLabels = 3
		c.Door = DoorFunc(func(*http.Request) Entry { return Entry{Labels: []labels.Label{{Name: "instance", Value: "a"}}} })
	})
	w := post(h, type2, encode(t, newBuilder().sample(0, 1, "__name__", "a", "x", "1").sample(0, 1, "__name__", "b", "x", "1", "y", "2").request()))
	if w.Code != 400 || written(w) != "1/0/0" {
		t.Errorf("status %d, %s written: %s", w.Code, written(w), w.Body)
	}
}
