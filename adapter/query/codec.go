package query

import (
	"bytes"
	"math"
	"strconv"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	v1 "github.com/prometheus/prometheus/web/api/v1"
)

// codec writes the answers to queries as Prometheus' own codec does, byte for byte,
// at a fraction of the cost. What has native histograms, and what is no answer to a
// query, it leaves to that codec. It is safe for concurrent use.
type codec struct{ v1.JSONCodec }

// Encode implements v1.Codec.
func (c codec) Encode(resp *v1.Response) ([]byte, error) {
	data, ok := resp.Data.(*v1.QueryData)
	if !ok || !floatsOnly(data.Result) {
		return c.JSONCodec.Encode(resp)
	}
	// Prometheus' codec writes all but the series, which go where it has none.
	bare, shell := *data, *resp
	bare.Result, shell.Data = emptyOf(data.Result), &bare
	frame, err := c.JSONCodec.Encode(&shell)
	if err != nil {
		return nil, err
	}
	const opening = `"result":[`
	at := bytes.Index(frame, []byte(opening))
	if at < 0 {
		return c.JSONCodec.Encode(resp)
	}
	at += len(opening)
	out := make([]byte, 0, int64(len(frame))+sizeOf(data.Result))
	out = appendValue(append(out, frame[:at]...), data.Result)
	return append(out, frame[at:]...), nil
}

// floatsOnly reports whether v is a matrix or a vector without native histograms.
func floatsOnly(v parser.Value) bool {
	switch v := v.(type) {
	case promql.Matrix:
		for i := range v {
			if len(v[i].Histograms) > 0 {
				return false
			}
		}
		return true
	case promql.Vector:
		for i := range v {
			if v[i].H != nil {
				return false
			}
		}
		return true
	}
	return false
}

func emptyOf(v parser.Value) parser.Value {
	if _, ok := v.(promql.Vector); ok {
		return promql.Vector{}
	}
	return promql.Matrix{}
}

// appendValue appends the elements of a matrix or a vector without histograms.
func appendValue(dst []byte, v parser.Value) []byte {
	switch v := v.(type) {
	case promql.Matrix:
		var texts timeTexts
		for i := range v {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = texts.appendSeries(dst, &v[i])
		}
	case promql.Vector:
		for i := range v {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendLabels(append(dst, `{"metric":`...), v[i].Metric)
			dst = appendPoint(append(dst, `,"value":`...), v[i].T, v[i].F)
			dst = append(dst, '}')
		}
	}
	return dst
}

// timeTexts are the times of a matrix's first long series as they are written: the
// others mostly have the same.
type timeTexts struct {
	points []promql.FPoint
	ends   []int32 // in text, of the time of each point
	text   []byte
}

func (x *timeTexts) appendSeries(dst []byte, s *promql.Series) []byte {
	dst = appendLabels(append(dst, `{"metric":`...), s.Metric)
	if len(s.Floats) > 0 {
		dst = append(dst, `,"values":`...)
	}
	opening, first := byte('['), x.points == nil && len(s.Floats) > 1
	for i, p := range s.Floats {
		dst = append(dst, opening, '[')
		opening = ','
		switch {
		case first:
			from := len(dst)
			dst = appendSeconds(dst, p.T)
			x.text = append(x.text, dst[from:]...)
			x.ends = append(x.ends, int32(len(x.text)))
		case i < len(x.ends) && x.points[i].T == p.T:
			from := int32(0)
			if i > 0 {
				from = x.ends[i-1]
			}
			dst = append(dst, x.text[from:x.ends[i]]...)
		default:
			dst = appendSeconds(dst, p.T)
		}
		dst = append(appendNumber(append(dst, `,"`...), p.F), `"]`...)
	}
	if first {
		x.points = s.Floats
	}
	if len(s.Floats) > 0 {
		dst = append(dst, ']')
	}
	return append(dst, '}')
}

func appendLabels(dst []byte, lset labels.Labels) []byte {
	dst = append(dst, '{')
	first := true
	lset.Range(func(l labels.Label) {
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = appendString(append(appendString(dst, l.Name), ':'), l.Value)
	})
	return append(dst, '}')
}

// appendString appends s in quotes, escaped as Prometheus' codec escapes labels.
func appendString(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	from := 0
	for i := range len(s) {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, s[from:i]...)
		from = i + 1
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&0xf])
		}
	}
	return append(append(dst, s[from:]...), '"')
}

func appendPoint(dst []byte, t int64, v float64) []byte {
	dst = appendSeconds(append(dst, '['), t)
	dst = appendNumber(append(dst, `,"`...), v)
	return append(dst, `"]`...)
}

// appendSeconds appends milliseconds as seconds.
func appendSeconds(dst []byte, t int64) []byte {
	if t < 0 {
		dst = append(dst, '-')
		t = -t
	}
	dst = strconv.AppendInt(dst, t/1000, 10)
	if f := t % 1000; f != 0 {
		dst = append(dst, '.', byte('0'+f/100), byte('0'+f/10%10), byte('0'+f%10))
	}
	return dst
}

// appendNumber appends the shortest decimal that is read back as v. Whole numbers and
// those of few decimal places, which most are, do not need the search for it: of
// fifteen digits and less, every decimal is a float of its own.
func appendNumber(dst []byte, v float64) []byte {
	const exact, places = 1e15, 1e3
	abs := math.Abs(v)
	switch {
	case abs >= exact || abs < 1/places || v != v:
	case v == math.Trunc(v):
		return strconv.AppendInt(dst, int64(v), 10)
	case abs < exact/places:
		if s := math.Round(v * places); s/places == v {
			return appendThousandths(dst, int64(s))
		}
	}
	if abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		return strconv.AppendFloat(dst, v, 'e', -1, 64)
	}
	return strconv.AppendFloat(dst, v, 'f', -1, 64)
}

// appendThousandths appends n thousandths, which are no whole number.
func appendThousandths(dst []byte, n int64) []byte {
	if n < 0 {
		dst = append(dst, '-')
		n = -n
	}
	dst = strconv.AppendInt(dst, n/1000, 10)
	f := n % 1000
	dst = append(dst, '.', byte('0'+f/100), byte('0'+f/10%10), byte('0'+f%10))
	for dst[len(dst)-1] == '0' {
		dst = dst[:len(dst)-1]
	}
	return dst
}
