package seed

import (
	"strings"
	"testing"

	"github.com/ticktier/ticktier/adapter/store"
)

// Every series of a scrape gets a history over all tiers, in its own kind: a counter
// grows, a gauge stays about what it is, and what is 1 stays 1.
func TestLike(t *testing.T) {
	c := config(t, 3)
	c.Like, c.LikeInstance = []byte("# TYPE c_total counter\nc_total{device=\"eth0\"} 8640000\n# TYPE g gauge\ng 500\n# TYPE i_info gauge\ni_info{nodename=\"x\"} 1\n"), "machine"
	if _, err := Run(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	raw, fine, coarse := read(t, c, store.Last)
	end := c.End.UnixMilli()
	for name, want := range map[string]func(list [][2]float64) bool{
		`{__name__="c_total", device="eth0", instance="machine", job="node"}`: func(l [][2]float64) bool { return l[len(l)-1][1] > l[0][1] },
		`{__name__="g", instance="machine", job="node"}`:                      func(l [][2]float64) bool { return l[0][1] > 250 && l[0][1] < 1000 },
		`{__name__="i_info", instance="machine", job="node", nodename="x"}`:   func(l [][2]float64) bool { return l[0][1] == 1 && l[len(l)-1][1] == 1 },
	} {
		for tier, m := range map[string]map[string][][2]float64{"raw": raw, "5m": fine, "1h": coarse} {
			list := m[name]
			if len(list) == 0 || !want(list) {
				t.Errorf("%s in %s: %d samples, %v", name, tier, len(list), list[:min(3, len(list))])
			}
		}
		if n := len(coarse[name]); n < 12*24 {
			t.Errorf("%s has %d hours", name, n)
		}
		if last := int64(raw[name][len(raw[name])-1][0]); end-last > likeInterval {
			t.Errorf("%s ends %d ms before the end", name, end-last)
		}
	}
	c = config(t, 3)
	c.Like = []byte("no { scrape")
	if _, err := Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), "parse the scrape") {
		t.Errorf("a scrape that is none: %v", err)
	}
}
