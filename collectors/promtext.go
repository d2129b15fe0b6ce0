package collectors

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/ticktier/ticktier/collectors/promtext"
)

// textSample is one line of a text file.
type textSample struct {
	name   string
	labels []Label // sorted
	value  float64
}

// key tells a series from all others.
func (s *textSample) key() string {
	var b strings.Builder
	b.WriteString(s.name)
	for _, l := range s.labels {
		b.WriteString("\xff" + l.Name + "\xff" + l.Value)
	}
	return b.String()
}

// textFamily is what comments say of a metric.
type textFamily struct {
	help string
	kind promtext.Type
}

// promText is what a file in Prometheus' text format 0.0.4 holds.
type promText struct {
	samples  []textSample
	families map[string]textFamily
}

var (
	errTimestamp = errors.New("samples with times are not supported")
	errDuplicate = errors.New("the series is there twice")
)

// parsePromText reads a whole file; an error means that nothing of it can be
// trusted. At most max samples are read.
func parsePromText(text []byte, max int) (*promText, error) {
	if !utf8.Valid(text) {
		return nil, errors.New("not UTF-8")
	}
	f := &promText{families: map[string]textFamily{}}
	seen := map[string]bool{}
	p := promtext.Parser{Strict: true}
	p.Reset(text, promtext.Text)
	for {
		e, err := p.Next()
		if err == io.EOF {
			return f, nil
		}
		if err != nil {
			return nil, err
		}
		if e != promtext.Sample {
			f.note(&p, e)
			continue
		}
		s, err := sampleOf(&p)
		switch {
		case err != nil:
		case seen[s.key()]:
			err = errDuplicate
		case len(f.samples) == max:
			err = fmt.Errorf("more than %d samples", max)
		}
		if err != nil {
			return nil, fmt.Errorf("series %s: %w", p.Series, err)
		}
		seen[s.key()] = true
		f.samples = append(f.samples, s)
	}
}

// note takes what a line says of a family.
func (f *promText) note(p *promtext.Parser, e promtext.Entry) {
	x := f.families[string(p.Name)]
	if e == promtext.HelpLine {
		x.help = p.Help()
	} else {
		x.kind = p.Type
	}
	f.families[string(p.Name)] = x
}

func sampleOf(p *promtext.Parser) (s textSample, err error) {
	if p.Timed {
		return s, errTimestamp
	}
	t := p.Type
	p.Type = promtext.Unknown // bounds of buckets stay as they are written
	name, labels, err := p.Labels(nil)
	p.Type = t
	s = textSample{name: name, value: p.Value}
	for _, l := range labels {
		s.labels = append(s.labels, Label(l))
	}
	return s, err
}

// family finds what is known of a sample's metric. Histograms and summaries are
// taken apart: their buckets, sums and counts are counters, their quantiles gauges.
func (f *promText) family(name string) (t Type, help string) {
	if x, ok := f.families[name]; ok {
		switch x.kind {
		case promtext.Counter:
			return Counter, x.help
		case promtext.Gauge, promtext.Summary:
			return Gauge, x.help
		}
		return Untyped, x.help
	}
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		base, ok := strings.CutSuffix(name, suffix)
		if x := f.families[base]; ok && (x.kind == promtext.Histogram || x.kind == promtext.Summary) {
			return Counter, x.help
		}
	}
	return Untyped, ""
}
