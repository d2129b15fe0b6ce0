package main

import (
	"context"
	"fmt"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/tsdb/chunkenc"

	"github.com/ticktier/ticktier/adapter/live"
	"github.com/ticktier/ticktier/adapter/store"
)

// liveMetrics are what the page's live view shows; all of a device would be many times
// as much.
const liveMetrics = "node_load1|node_network_(receive|transmit)_(bytes|packets)_total|node_softnet_(processed|dropped)_total|node_nf_conntrack_entries"

// liveSource reads raw samples for those who watch a device: the idle time of each CPU,
// traffic, softnet, load and connections.
func liveSource(raw *store.Raw) live.Source {
	return func(ctx context.Context, instance string, from, to int64) (out []live.Line, err error) {
		q, err := raw.Querier(from, to)
		if err != nil {
			return nil, fmt.Errorf("open the raw samples: %w", err)
		}
		defer q.Close() //nolint:errcheck // only read
		who, err := labels.NewMatcher(labels.MatchEqual, "instance", instance)
		if err != nil {
			return nil, err
		}
		idle := labels.MustNewMatcher(labels.MatchEqual, "mode", "idle")
		cpu := labels.MustNewMatcher(labels.MatchEqual, model.MetricNameLabel, "node_cpu_seconds_total")
		rest := labels.MustNewMatcher(labels.MatchRegexp, model.MetricNameLabel, liveMetrics)
		for _, ms := range [][]*labels.Matcher{{who, cpu, idle}, {who, rest}} {
			set := q.Select(ctx, true, nil, ms...)
			var it chunkenc.Iterator
			for set.Next() {
				s := set.At()
				l := live.Line{Labels: s.Labels().Map(), Key: s.Labels().String()}
				it = s.Iterator(it)
				for t := it.Next(); t != chunkenc.ValNone; t = it.Next() {
					if t != chunkenc.ValFloat {
						continue
					}
					at, v := it.At()
					if at >= from && at <= to && !value.IsStaleNaN(v) && v-v == 0 { // JSON has no NaN and no infinity
						l.Samples = append(l.Samples, [2]float64{float64(at), v})
					}
				}
				if err := it.Err(); err != nil {
					return nil, fmt.Errorf("read %s: %w", l.Key, err)
				}
				out = append(out, l)
			}
			if err := set.Err(); err != nil {
				return nil, fmt.Errorf("select the raw samples: %w", err)
			}
		}
		return out, nil
	}
}
