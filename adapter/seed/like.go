package seed

import (
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"

	"github.com/ticktier/ticktier/adapter/fold"
)

// The times between two made-up samples of a series that is like a scraped one, in ms:
// where raw samples are kept, a scrape's; where five-minute buckets are, well within a
// look-back; and before, where only hours are.
const (
	likeInterval = 15_000
	likeFine     = 120_000
	likeSparse   = 600_000
)

// like adds a history of every series of a scrape in the text format: counters grow
// about as fast as they are, per day; gauges walk around their values; what is 0 or 1
// stays as it is. fine and raw are when five-minute buckets and raw samples begin.
func (s *seeder) like(scrape []byte, fine, raw int64) error {
	p, err := textparse.New(scrape, "text/plain", labels.NewSymbolTable(), textparse.ParserOptions{})
	if err != nil {
		return fmt.Errorf("parse the scrape: %w", err)
	}
	types := map[string]model.MetricType{}
	s.counters = map[string]bool{}
	var lset labels.Labels
	for {
		e, err := p.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("parse the scrape: %w", err)
		}
		if e == textparse.EntryType {
			name, typ := p.Type()
			types[string(name)] = typ
		}
		if e != textparse.EntrySeries {
			continue
		}
		_, _, v := p.Series()
		p.Labels(&lset)
		name := lset.Get(model.MetricNameLabel)
		s.counters[name] = counterLike(types, name)
		s.all = append(s.all, likeSeries(s.Seed, len(s.all), lset, s.LikeInstance, v, s.counters[name], s.from, fine, raw))
	}
}

// counterLike reports whether a scraped series counts.
func counterLike(types map[string]model.MetricType, name string) bool {
	if t, ok := types[name]; ok && t != model.MetricTypeUnknown {
		return t == model.MetricTypeCounter
	}
	for _, suffix := range []string{"_total", "_bucket", "_count", "_sum"} {
		if strings.HasSuffix(name, suffix) {
			return true
		}
	}
	return false
}

func likeSeries(seed uint64, n int, lset labels.Labels, instance string, v float64, counter bool, from, fine, raw int64) *series {
	b := labels.NewBuilder(lset)
	b.Set("instance", instance)
	b.Set("job", "node")
	sh := &shape{name: lset.Get(model.MetricNameLabel), counter: counter, interval: likeInterval}
	sh.next = func(s *series, day float64) float64 {
		switch {
		case counter:
			perSecond := v / 86_400 * (0.5 + day) * s.r.Float64()
			return s.grow(perSecond * float64(s.step()) / 1000)
		case v == 0, v == 1, math.IsNaN(v), math.IsInf(v, 0):
			return v
		}
		return math.Round((v+s.walk(0.05*math.Abs(v)*day, 0.01*math.Abs(v)))*100) / 100
	}
	s := &series{shape: sh, lset: b.Labels(), r: rand.New(rand.NewPCG(seed, 1<<40+uint64(n))), fine: fine, raw: raw, steady: true}
	s.t = from + s.r.Int64N(sh.interval)
	return s
}

// lacks is Lacks, and for what a scrape has the same by its type.
func (s *seeder) lacks(metric string) fold.Parts {
	if counter, ok := s.counters[metric]; ok {
		if counter {
			return fold.PartSum
		}
		return fold.PartCounter
	}
	return Lacks(metric)
}
