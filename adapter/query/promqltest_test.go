package query

import (
	"math"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/teststorage"
)

// scripted is the storage of Prometheus' own test scripts, read through Queryable.
type scripted struct {
	*teststorage.TestStorage
	q *Queryable
}

func (s scripted) tiers() *Queryable { return s.q }

// everything is a store of raw samples for all time.
type everything struct{ *teststorage.TestStorage }

func (everything) MinTime() int64 { return math.MinInt64 }

func newScripted(t testing.TB) storage.Storage {
	s := promqltest.NewBuiltinTestStorage(t)
	raw := everything{s}
	empty := []Tier{
		&fakeTier{res: 5 * minute, from: math.MaxInt64, watermark: math.MinInt64},
		&fakeTier{res: hour, from: math.MaxInt64, watermark: math.MinInt64},
	}
	return scripted{s, newQueryable(Config{Raw: raw, Tiers: empty, LookbackDelta: 5 * time.Minute, MaxSamples: 1e6, MaxResponseBytes: 1 << 40})}
}

// Prometheus' own PromQL scripts, unchanged, against raw samples.
func TestBuiltinScriptsOnRaw(t *testing.T) {
	t.Parallel()
	promqltest.RunBuiltinTestsWithStorage(t, testEngine(t, false), newScripted)
}

// The same with every selector rewritten as if it read buckets too: evaluation
// times, offsets, @ and subqueries must be followed exactly.
func TestBuiltinScriptsRewritten(t *testing.T) {
	t.Parallel()
	promqltest.RunBuiltinTestsWithStorage(t, testEngine(t, true), newScripted)
}
