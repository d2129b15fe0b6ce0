package scrape

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

const (
	textType = "text/plain; version=0.0.4; charset=utf-8"
	omType   = "application/openmetrics-text; version=1.0.0; charset=utf-8"
)

// scrapeFor runs a scraper for d of fake time.
func scrapeFor(t *testing.T, c Config, d time.Duration) *Scraper {
	t.Helper()
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	if err := s.Run(ctx); err != nil {
		t.Fatal(err)
	}
	return s
}

// asked answers with each text once, and with the last from then on.
func asked(typ string, texts ...string) func(int, *http.Request) answer {
	return func(n int, _ *http.Request) answer { return answer{typ: typ, body: texts[min(n, len(texts)-1)]} }
}

// values are the samples of a series without their times.
func values(samples []string) string {
	var out []string
	for _, s := range samples {
		v, _, _ := strings.Cut(s, "@")
		out = append(out, v)
	}
	return strings.Join(out, " ")
}

const from = `instance="h:80",job="scrape"`

func TestSeriesComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRows(t)
		net := &fakeNet{answer: map[string]func(int, *http.Request) answer{
			"h": asked(textType, "# HELP a help\n# TYPE a gauge\na 1\nb{job=\"x\"} 2\n", "a 2\nb{job=\"x\"} 2\nc{z=\"1\",y=\"2\"} 5\n", "a 3\n", "a 4\nc{y=\"2\",z=\"1\"} 6\n"),
		}}
		s := scrapeFor(t, config(t, r, net, &logs{}, "http://h#interval=10s"), 40*time.Second)
		for k, want := range map[string]string{
			"a{" + from + "}":                                     "1 2 3 4",
			`b{exported_job="x",` + from + "}":                    "2 2 stale",
			"c{" + from + `,y="2",z="1"}`:                         "5 stale 6",
			"up{" + from + "}":                                    "1 1 1 1",
			"scrape_samples_scraped{" + from + "}":                "2 3 1 2",
			"scrape_samples_post_metric_relabeling{" + from + "}": "2 3 1 2",
			"scrape_series_added{" + from + "}":                   "2 1 0 1",
		} {
			if got := values(r.of(k)); got != want {
				t.Errorf("%s: %q, want %q", k, got, want)
			}
		}
		for i := 1; i < len(r.times); i++ {
			if d := time.Duration(r.times[i] - r.times[i-1]); d != 10*time.Second {
				t.Errorf("scrape %d came %s after the one before", i, d)
			}
		}
		if m := r.schema.Series()[5]; m.Name != "a" || m.Help != "help" {
			t.Errorf("%+v", m)
		}
		if got := s.stats.series.Load(); got != 2 {
			t.Errorf("%d series", got)
		}
	})
}

// TestOwnTimes scrapes series with times of their own, and with start times.
func TestOwnTimes(t *testing.T) {
	om := func(s string) string { return strings.ReplaceAll(s, "@", "1750000000") + "# EOF\n" }
	synctest.Test(t, func(t *testing.T) {
		r := newRows(t)
		net := &fakeNet{answer: map[string]func(int, *http.Request) answer{"h": asked(omType,
			om("# TYPE c counter\nc_total{x=\"1\"} 5 # {id=\"1\"} 1\nc_created{x=\"1\"} 1749999000.5\nc_total{x=\"2\"} 6\n# TYPE t gauge\nt 1 @.5\n"),
			om("# TYPE c counter\nc_total{x=\"1\"} 6\nc_created{x=\"1\"} 1749999000.5\nc_total{x=\"2\"} 7\n# TYPE t gauge\nt 1 @.5\n"),
			om("# TYPE c counter\nc_total{x=\"1\"} 1\nc_created{x=\"1\"} @.001\n# TYPE t gauge\nt 2 @.25\n"),
			om("# TYPE c counter\nc_total{x=\"1\"} 2\nc_created{x=\"1\"} 1850000000\n# TYPE t gauge\nt 3 1@\n"),
			om("# TYPE h histogram\nh_bucket{le=\"1\"} 2\nh_bucket{le=\"+Inf\"} 3\nh_sum 4\nh_count 3\nh_created @\n# TYPE t gauge\nt 4 1750000020\n"),
		)}}
		c := config(t, r, net, &logs{}, "http://h#interval=10s")
		s := scrapeFor(t, c, 50*time.Second)
		for k, want := range map[string]string{
			"c_total{" + from + `,x="1"}`:   "5 since -999500 6 since -999500 1 since 1 2 stale",
			"c_total{" + from + `,x="2"}`:   "6 7 stale",
			"t{" + from + "}":               "1@500 4@20000",
			"h_sum{" + from + "}":           "4 since 0",
			"c_created{" + from + `,x="1"}`: "",
		} {
			var got []string
			for _, x := range r.of(k) {
				if !strings.HasPrefix(k, "t{") {
					v, at, _ := strings.Cut(x, "@")
					if _, since, ok := strings.Cut(at, " "); ok {
						v += " " + since
					}
					x = v
				}
				got = append(got, x)
			}
			if k == "h_sum{"+from+"}" {
				want = "4" // since the epoch of the test, which is written as none
				got = []string{values(r.of(k))}
			}
			if strings.Join(got, " ") != want {
				t.Errorf("%s: %q, want %q", k, got, want)
			}
		}
		if s.stats.exemplars.Load() != 1 || s.stats.dropped.old.Load() != 1 || s.stats.dropped.ahead.Load() != 1 {
			t.Errorf("%d exemplars, %d old, %d ahead", s.stats.exemplars.Load(), s.stats.dropped.old.Load(), s.stats.dropped.ahead.Load())
		}
		// Without times of their own they are as others, and end as others.
		r2 := newRows(t)
		net2 := &fakeNet{answer: map[string]func(int, *http.Request) answer{"h": asked(textType, "t 1 1750000000500\n", "t 2 1750000000500\n", "")}}
		scrapeFor(t, config(t, r2, net2, &logs{}, "http://h#interval=10s&honor_timestamps=false"), 30*time.Second)
		if got := values(r2.of("t{" + from + "}")); got != "1 2 stale" {
			t.Error(got)
		}
	})
}

// TestOldTimes: samples whose own times are longer ago than receivers take are left out
// and counted, and said once.
func TestOldTimes(t *testing.T) {
	for _, c := range []struct {
		options string
		want    string
		dropped uint64
	}{
		{"", "", 12},
		{"&max_age=72h", "2 stale", 6},
	} {
		synctest.Test(t, func(t *testing.T) {
			r, l := newRows(t), &logs{}
			old := 1_750_000_000_000 - 25*time.Hour.Milliseconds()
			net := &fakeNet{answer: map[string]func(int, *http.Request) answer{
				"h": asked(textType, fmt.Sprintf("a 1 0\nb 2 %d\nc 3\n", old))}}
			s := scrapeFor(t, config(t, r, net, l, "http://h#interval=10s"+c.options), 60*time.Second)
			if n := s.stats.dropped.tooOld.Load(); n != c.dropped {
				t.Errorf("%d are counted, want %d", n, c.dropped)
			}
			if got := values(r.of("a{" + from + "}")); got != "" {
				t.Errorf("of 1970: %s", got)
			}
			if got := values(r.of("b{" + from + "}")); strings.TrimSuffix(got, " stale") != strings.TrimSuffix(c.want, " stale") {
				t.Errorf("of yesterday: %s, want %s", got, c.want)
			}
			if got := values(r.of("c{" + from + "}")); !strings.HasPrefix(got, "3 3") {
				t.Errorf("of now: %s", got)
			}
			if l.count("too old") != 1 {
				t.Errorf("log:\n%s", l.b.String())
			}
		})
	}
}

// zipped is a text as gzip has it.
func zipped(t *testing.T, s string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(s)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestBadTargets has a good target beside each bad one, which is not to notice.
func TestBadTargets(t *testing.T) {
	gz := http.Header{"Content-Encoding": {"gzip"}}
	good := "a 1\n"
	for name, c := range map[string]struct {
		answer answer
		log    string
	}{
		"hangs":           {answer{hang: true}, "within the timeout"},
		"refuses":         {answer{err: errors.New("connection refused")}, "connection refused"},
		"500":             {answer{code: 500, body: good}, "500"},
		"404":             {answer{code: 404}, "404"},
		"204":             {answer{code: 204}, "204"},
		"redirect":        {answer{code: 302, header: http.Header{"Location": {"http://elsewhere/?token=hidden"}}}, "redirects are not followed"},
		"garbage":         {answer{body: "\x00\x01\x02"}, "line 1"},
		"a page":          {answer{typ: "text/html", body: "<html></html>\n"}, "line 1"},
		"half good":       {answer{body: "a 2\nb\n"}, "line 2"},
		"no EOF":          {answer{typ: omType, body: "a 2\n"}, "EOF"},
		"too large":       {answer{body: strings.Repeat("# x\n", 1<<20/4+1)}, "max-bytes"},
		"bomb":            {answer{header: gz, body: zipped(t, strings.Repeat("\n", 2<<20))}, "max-bytes"},
		"not gzip":        {answer{header: gz, body: good}, "expand"},
		"cut gzip":        {answer{header: gz, body: zipped(t, strings.Repeat("a 1\n", 100))[:30]}, "read the answer"},
		"other encoding":  {answer{header: http.Header{"Content-Encoding": {"br"}}, body: good}, "not asked for"},
		"other protobuf":  {answer{typ: "application/vnd.google.protobuf; proto=x; encoding=delimited"}, "another kind"},
		"bad protobuf":    {answer{typ: "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited", body: "\x05\x0a"}, "protobuf"},
		"too many series": {answer{body: manySeries(1001)}, "max-series"},
		"too many labels": {answer{body: "a{" + manyLabels(63) + "} 1\n"}, "65 labels"},
		"huge labels":     {answer{body: "a{b=\"" + strings.Repeat("x", 9<<10) + "\"} 1\n"}, "bytes"},
		"doubled label":   {answer{body: "a{b=\"1\",b=\"2\"} 1\n"}, "twice"},
		"all labels huge": {answer{body: hugeSeries(100)}, "max-series"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, l := newRows(t), &logs{}
				net := &fakeNet{answer: map[string]func(int, *http.Request) answer{
					"bad": func(n int, _ *http.Request) answer {
						if n == 0 || n == 4 {
							return answer{body: "a 1\n"}
						}
						return c.answer
					},
					"h": asked(textType, "x 1\n"),
				}}
				s := scrapeFor(t, config(t, r, net, l, "http://bad/m?token=hidden#interval=10s&timeout=1s", "http://h#interval=10s"), 60*time.Second)
				bad := strings.ReplaceAll(from, `"h:`, `"bad:`)
				if got := values(r.of("up{" + bad + "}")); got != "1 0 0 0 1 0" {
					t.Errorf("up: %q", got)
				}
				if got := values(r.of("a{" + bad + "}")); got != "1 stale 1 stale" {
					t.Errorf("a: %q", got)
				}
				if got := values(r.of("scrape_series_added{" + bad + "}")); !strings.HasPrefix(got, "1 ") || strings.Fields(got)[4] != "0" {
					t.Errorf("added: %q", got)
				}
				if got := values(r.of("x{" + from + "}")); got != "1 1 1 1 1 1" {
					t.Errorf("the good target: %q", got)
				}
				if l.count("cannot be scraped") != 2 || l.count("scraped again") != 1 || l.count(c.log) == 0 || l.count("hidden") > 0 {
					t.Errorf("log:\n%s", l.b.String())
				}
				if f := s.stats.failed.Load(); f != 4 {
					t.Errorf("%d scrapes failed", f)
				}
				if n := s.targets[0].reading.t.size; n > 1000*labelBytes {
					t.Errorf("%d bytes of labels are kept", n)
				}
			})
		})
	}
}

func manySeries(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "a{i=\"%d\"} 1\n", i)
	}
	return b.String()
}

func manyLabels(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "l%d=\"x\",", i)
	}
	return b.String()
}

func hugeSeries(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "a{i=\"%d%s\"} 1\n", i, strings.Repeat("x", 8000))
	}
	return b.String()
}

// TestChurn gives every scrape other series, for a day: memory stays bounded, and no
// series gets another's samples.
func TestChurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRows(t)
		net := &fakeNet{answer: map[string]func(int, *http.Request) answer{"h": func(n int, _ *http.Request) answer {
			var b strings.Builder
			b.WriteString("kept 1\n# TYPE c counter\n")
			for i := range 30 {
				fmt.Fprintf(&b, "c_total{n=\"%d\",i=\"%d\"} %d\n", n, i, n)
			}
			fmt.Fprintf(&b, "# TYPE g gauge\ng{n=\"%d\"} %d\ntimed{n=\"%d\"} %d %d\n# EOF\n", n, n, n, n, 1_750_000_000+n)
			return answer{typ: omType, body: b.String()}
		}}}
		c := config(t, r, net, &logs{}, "http://h#interval=60s")
		c.MaxSeries = 200
		s := scrapeFor(t, c, 24*time.Hour)
		if n := r.schema.Len(); n > 6*200+5 {
			t.Errorf("%d slots", n)
		}
		if len(s.table.index) > 2*6*200 || s.table.size > 200*labelBytes || len(s.targets[0].reading.entries) > 100 {
			t.Errorf("%d series, %d bytes, %d names are kept", len(s.table.index), s.table.size, len(s.targets[0].reading.entries))
		}
		if r.seals == 0 || r.schema.Generation() == 0 {
			t.Error("no slot was used again")
		}
		if s.stats.failed.Load() > 0 {
			t.Errorf("%d scrapes failed", s.stats.failed.Load())
		}
		if got := len(r.of("kept{" + from + "}")); got < 1400 {
			t.Errorf("%d samples", got)
		}
		for n := range 1400 {
			k := fmt.Sprintf(`g{%s,n="%d"}`, from, n)
			if d := cmp.Diff(fmt.Sprintf("%d stale", n), values(r.of(k))); d != "" {
				t.Fatalf("%s: %s", k, d)
			}
			k = fmt.Sprintf(`c_total{i="7",%s,n="%d"}`, from, n)
			if d := cmp.Diff(fmt.Sprintf("%d stale", n), values(r.of(k))); d != "" {
				t.Fatalf("%s: %s", k, d)
			}
			k = fmt.Sprintf(`timed{%s,n="%d"}`, from, n)
			if d := cmp.Diff(fmt.Sprint(n), values(r.of(k))); d != "" {
				t.Fatalf("%s: %s", k, d)
			}
		}
	})
}

// TestNotDelivered keeps the slots of series whose end nobody has yet.
func TestNotDelivered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, l := newRows(t), &logs{}
		net := &fakeNet{answer: map[string]func(int, *http.Request) answer{"h": func(n int, _ *http.Request) answer {
			return answer{body: fmt.Sprintf("a{n=\"%d\"} %d\n", n, n)}
		}}}
		c := config(t, r, net, l, "http://h#interval=60s")
		c.MaxSeries = 20
		c.Delivered = func() uint64 { return 0 }
		scrapeFor(t, c, 24*time.Hour)
		if r.schema.Generation() > 0 || r.schema.Len() > 6*20+5 {
			t.Errorf("generation %d, %d slots", r.schema.Generation(), r.schema.Len())
		}
		if l.count("max-series") != 1 {
			t.Error(l.b.String())
		}
	})
}

// TestAllocations scrapes an answer that was seen before.
func TestAllocations(t *testing.T) {
	body := []byte("# HELP c help\n# TYPE c counter\nc_total{x=\"1\"} 5 # {id=\"1\"} 1\nc_created{x=\"1\"} 1749999000.5\n# TYPE h histogram\nh_bucket{le=\"1\"} 2\nh_bucket{le=\"+Inf\"} 3\nh_sum 4\nh_count 3\n# TYPE t gauge\nt 1 1750000000.5\n# EOF\n")
	for form, b := range map[Format][]byte{OpenMetrics: body, Text: []byte("# TYPE h histogram\nh_bucket{le=\"1\"} 2\nh_sum 4\nh_count 3\nt 1 1750000000500\n"), Protobuf: protoBody(t)} {
		r := newRows(t)
		r.append(1, 0, 0, nil, nil)
		c := config(t, r, &fakeNet{}, &logs{}, "http://h")
		c.Append = func(uint64, int64, uint64, []int64, []uint64) {}
		s, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		once := func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.targets[0].reading.begin(1)
			if err := s.read(s.targets[0].reading, b, form); err != nil {
				t.Fatal(err)
			}
			s.store(s.targets[0], 1, 1, nil)
		}
		once()
		if n := testing.AllocsPerRun(100, once); n > 0 {
			t.Errorf("format %d: %v allocations", form, n)
		}
		if s.targets[0].reading.samples < 4 {
			t.Errorf("format %d: %d samples", form, s.targets[0].reading.samples)
		}
	}
}

// TestSlowTarget has one target that takes long beside one that does not: rows are in
// the order of their times, and no time is outside its scrape.
func TestSlowTarget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRows(t)
		net := &fakeNet{answer: map[string]func(int, *http.Request) answer{
			"h":    asked(textType, "a 1\n"),
			"slow": func(int, *http.Request) answer { return answer{body: "b 1\n", wait: 7 * time.Second} },
		}}
		scrapeFor(t, config(t, r, net, &logs{}, "http://h#interval=1s", "http://slow#interval=20s&timeout=10s"), 65*time.Second)
		if len(r.times) < 60 {
			t.Errorf("%d rows", len(r.times))
		}
		for i := 1; i < len(r.times); i++ {
			if r.times[i]-r.times[i-1] < int64(time.Millisecond) {
				t.Errorf("row %d is %s after the one before", i, time.Duration(r.times[i]-r.times[i-1]))
			}
		}
		if n := len(r.of(`b{instance="slow:80",job="scrape"}`)); n < 2 {
			t.Errorf("%d samples of the slow target", n)
		}
	})
}

// BenchmarkRead reads an answer of 1,000 series that was seen before.
func BenchmarkRead(b *testing.B) {
	var text strings.Builder
	text.WriteString("# TYPE a counter\n")
	for i := range 1000 {
		fmt.Fprintf(&text, "a_total{device=\"eth%d\",direction=\"receive\"} %d.5e3\n", i, i*1e6)
	}
	text.WriteString("# EOF\n")
	body := []byte(text.String())
	for name, form := range map[string]Format{"text": Text, "openmetrics": OpenMetrics} {
		b.Run(name, func(b *testing.B) {
			r := newRows(b)
			c := config(b, r, &fakeNet{}, &logs{}, "http://h")
			c.Append = func(uint64, int64, uint64, []int64, []uint64) {}
			c.MaxSeries = 2000
			s, err := New(c)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				s.mu.Lock()
				x := s.targets[0]
				x.reading.begin(1)
				err := s.read(x.reading, body, form)
				s.store(x, 1, 1, err)
				s.mu.Unlock()
				if err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/sample")
		})
	}
}
