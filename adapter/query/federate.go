package query

import (
	"net/http"
	"slices"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
)

// federate answers /federate: the newest sample, within the look-back, of every
// series that a match[] selects, in the text format. Native histograms, which that
// format cannot carry, are left out.
func (a *API) federate(w http.ResponseWriter, r *http.Request) {
	sets, err := newParser().ParseMetricSelectors(r.Form["match[]"])
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	now := time.Now().UnixMilli()
	q, err := a.queryable.Querier(now-ms(a.c.LookbackDelta)+1, now)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer q.Close()
	var list []storage.SeriesSet
	for _, m := range sets {
		list = append(list, q.Select(r.Context(), true, nil, m...))
	}
	set := storage.NewMergeSeriesSet(list, 0, storage.ChainedSeriesMerge)
	var out []newest
	for set.Next() {
		if n, ok := newestOf(set.At()); ok {
			out = append(out, n)
		}
	}
	if err := set.Err(); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	a.writeText(w, r, out)
}

// newest is the newest sample of a series.
type newest struct {
	name   string
	metric *dto.Metric
}

func newestOf(s storage.Series) (newest, bool) {
	var (
		t     int64
		v     float64
		found bool
	)
	it := s.Iterator(nil)
	for vt := it.Next(); vt != chunkenc.ValNone; vt = it.Next() {
		if vt == chunkenc.ValFloat {
			t, v = it.At()
			found = !value.IsStaleNaN(v)
		}
	}
	if it.Err() != nil || !found {
		return newest{}, false
	}
	m := &dto.Metric{Untyped: &dto.Untyped{Value: &v}, TimestampMs: &t}
	n := newest{metric: m}
	s.Labels().Range(func(l labels.Label) {
		if l.Name == model.MetricNameLabel {
			n.name = l.Value
			return
		}
		m.Label = append(m.Label, &dto.LabelPair{Name: &l.Name, Value: &l.Value})
	})
	return n, n.name != ""
}

// writeText writes the samples by metric.
func (a *API) writeText(w http.ResponseWriter, r *http.Request, list []newest) {
	slices.SortStableFunc(list, func(x, y newest) int { return strings.Compare(x.name, y.name) })
	format := expfmt.NegotiateAccept(r.Header, expfmt.DefaultAcceptedFormats()...)
	w.Header().Set("Content-Type", string(format))
	enc := expfmt.NewEncoder(w, format)
	for i := 0; i < len(list); {
		f := &dto.MetricFamily{Name: &list[i].name, Type: dto.MetricType_UNTYPED.Enum()}
		for ; i < len(list) && list[i].name == *f.Name; i++ {
			f.Metric = append(f.Metric, list[i].metric)
		}
		if err := enc.Encode(f); err != nil {
			a.c.Logger.Warn("federation stopped", "err", err)
			return
		}
	}
}
