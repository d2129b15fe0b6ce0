package query

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func anySource(int) bool { return true }

// Times are in minutes.
func minutes(list []stretch) []stretch {
	var out []stretch
	for _, s := range list {
		div := func(t int64) int64 {
			if t == math.MaxInt64 {
				return t
			}
			return t / minute
		}
		out = append(out, stretch{s.src, div(s.from), div(s.to)})
	}
	return out
}

func TestTimeline(t *testing.T) {
	const forever = math.MaxInt64
	srcs := func(raw, from5, to5, from60, to60 int64) []source {
		s := []source{{1, raw * minute, forever}, {5 * minute, from5 * minute, to5 * minute}, {hour, from60 * minute, to60 * minute}}
		for i := range s {
			if s[i].from == forever-forever%minute || s[i].from < 0 {
				s[i].from, s[i].to = forever, forever
			}
		}
		return s
	}
	tests := []struct {
		name   string
		srcs   []source
		choice choice
		want   []stretch
	}{
		{"all there, raw wanted", srcs(0, 0, 175, 0, 120), choice{}, []stretch{{0, 0, forever}}},
		{"all there, 5m wanted", srcs(0, 0, 175, 0, 120), choice{wanted: 1}, []stretch{{1, 0, 175}, {0, 175, forever}}},
		{"all there, 1h wanted", srcs(0, 0, 175, 0, 120), choice{wanted: 2}, []stretch{{2, 0, 120}, {1, 120, 175}, {0, 175, forever}}},
		{"raw expired at a window's edge", srcs(100, 0, 175, 0, 120), choice{}, []stretch{{1, 0, 100}, {0, 100, forever}}},
		{"raw expired within a window", srcs(102, 0, 175, 0, 120), choice{}, []stretch{{1, 0, 105}, {0, 105, forever}}},
		{"5m expired within an hour", srcs(150, 90, 175, 0, 120), choice{}, []stretch{{2, 0, 120}, {1, 120, 150}, {0, 150, forever}}},
		{"first data within a window", srcs(42, 40, 175, 0, 120), choice{}, []stretch{{0, 42, forever}}},
		{"first data within a window, 5m wanted", srcs(42, 40, 175, 0, 120), choice{wanted: 1}, []stretch{{1, 40, 175}, {0, 175, forever}}},
		{"nothing folded", srcs(42, -1, 0, -1, 0), choice{wanted: 2}, []stretch{{0, 42, forever}}},
		{"a hole of raw", srcs(0, 0, 240, 0, 240), choice{holes: [][2]int64{{60 * minute, 120 * minute}}}, []stretch{{0, 0, 60}, {1, 60, 120}, {0, 120, forever}}},
		{"a hole that only hours have", srcs(0, 180, 240, 0, 240), choice{holes: [][2]int64{{60 * minute, 120 * minute}}}, []stretch{{0, 0, 60}, {2, 60, 120}, {0, 120, forever}}},
		{"a hole that nothing else has", srcs(0, 0, 60, -1, 0), choice{holes: [][2]int64{{60 * minute, 120 * minute}}}, []stretch{{0, 0, forever}}},
		{"a hole of raw alone", srcs(0, 0, 240, 0, 240), choice{holes: [][2]int64{{60 * minute, 120 * minute}}, allowed: func(i int) bool { return i == 0 }}, []stretch{{0, 0, forever}}},
		{"forced tier", srcs(0, 0, 175, 0, 120), choice{allowed: func(i int) bool { return i == 2 }}, []stretch{{2, 0, 120}}},
		{"inner", srcs(0, 0, 175, 0, 120), choice{wanted: 2, inner: &[2]int64{7 * minute, 133 * minute}},
			[]stretch{{0, 0, 10}, {1, 10, 60}, {2, 60, 120}, {1, 120, 130}, {0, 130, forever}}},
		{"inner, edges expired", srcs(100, 0, 175, 0, 120), choice{wanted: 2, inner: &[2]int64{7 * minute, 133 * minute}},
			[]stretch{{1, 0, 60}, {2, 60, 120}, {1, 120, 130}, {0, 130, forever}}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			if tc.choice.allowed == nil {
				tc.choice.allowed = anySource
			}
			got := minutes(timeline(tc.srcs, tc.choice))
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(stretch{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Whatever the sources hold: stretches ascend, do not overlap, begin and end on
// the edges of their windows, and leave out nothing that a source has all of.
func TestTimelineInvariants(t *testing.T) {
	r := rand.New(rand.NewPCG(seed(t), 4))
	for range 20000 {
		srcs := []source{
			{1, r.Int64N(10 * hour), math.MaxInt64},
			{5 * minute, r.Int64N(120) * 5 * minute, r.Int64N(140) * 5 * minute},
			{hour, r.Int64N(10) * hour, 0},
		}
		srcs[2].to = floorTo(srcs[1].to, hour) // hours are folded from 5-minute windows
		c := choice{wanted: r.IntN(3), allowed: anySource}
		if r.IntN(3) == 0 {
			lo := r.Int64N(10 * hour)
			c.inner = &[2]int64{lo, lo + r.Int64N(10*hour)}
		}
		list := timeline(srcs, c)
		for i, s := range list {
			res := srcs[s.src].res
			last := i == len(list)-1
			if s.from >= s.to || floorTo(s.from, res) != s.from || (!last && floorTo(s.to, res) != s.to) || (i > 0 && list[i-1].to > s.from) || (i > 0 && list[i-1].src == s.src && list[i-1].to == s.from) {
				t.Fatalf("sources %v, choice %+v: stretches %v", srcs, c, list)
			}
			// A window read from a tier is there.
			if s.src != rawSource && (s.from < srcs[s.src].from || s.to > srcs[s.src].to) {
				t.Fatalf("sources %v, choice %+v: stretch %v is not held", srcs, c, s)
			}
		}
		for i, src := range srcs {
			from := src.from
			if i != rawSource {
				from += src.res // within the oldest window, a finer source may have it all
			}
			if from >= src.to {
				continue
			}
			for range 5 {
				at := from + r.Int64N(min(src.to, 20*hour)-from)
				covered := false
				for _, s := range list {
					covered = covered || (s.from <= at && at < s.to)
				}
				if !covered {
					t.Fatalf("sources %v, choice %+v: nothing read at %d: %v", srcs, c, at, list)
				}
			}
		}
	}
}
