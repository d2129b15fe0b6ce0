package store

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ticktier/ticktier/adapter/fold"
)

// TestCounterSamplesIncrease: whatever the raw samples of a window were, the
// increase over the Counter samples is the increase over them, also where the
// counter has passed what it had counted before its reset.
func TestCounterSamplesIncrease(t *testing.T) {
	for name, vs := range map[string][]float64{
		"no reset":            {5, 7, 9},
		"reset late":          {100, 200, 3},
		"reset early, passed": {100, 0, 50, 300},
		"reset to the same":   {100, 0, 100},
		"two resets, passed":  {10, 2, 12, 1, 40},
		"two resets":          {10, 2, 12, 1},
	} {
		f := fold.NewFolder(res)
		for i, v := range vs {
			f.Add(int64(i+1)*1000, v)
		}
		b := f.Buckets()[0]
		var got samples
		sampler{agg: Counter, res: res}.add(&got, &b)
		sum := 0.0
		for i := 1; i < len(got.vs); i++ {
			if got.ts[i] <= got.ts[i-1] {
				t.Errorf("%s: times %v", name, got.ts)
			}
			if got.vs[i] < got.vs[i-1] {
				sum += got.vs[i-1]
			}
			sum += got.vs[i] - got.vs[i-1]
		}
		if want := b.Increase(); sum != want {
			t.Errorf("%s: samples %v increase by %v, want %v", name, got.vs, sum, want)
		}
	}
}

// TestTiersShareARegistry: both tiers register their metrics in one registry.
func TestTiersShareARegistry(t *testing.T) {
	reg := prometheus.NewRegistry()
	for _, r := range []int64{res, 12 * res} {
		b, err := OpenBuckets(t.TempDir(), BucketsOptions{Resolution: r, BlockRange: 24 * r, Logger: quiet(), Registerer: reg})
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
	}
	if _, err := reg.Gather(); err != nil {
		t.Error(err)
	}
}
