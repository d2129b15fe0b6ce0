package expose

import (
	"io"
	"mime"
	"strconv"
	"strings"

	"github.com/klauspost/compress/gzip"
)

const (
	typeText = "text/plain; version=0.0.4; charset=utf-8"
	typeOpen = "application/openmetrics-text; version=" // 1.0.0 or 0.0.1
)

// format is a form of exposition.
type format uint8

const (
	asText  format = iota // Prometheus text 0.0.4
	asOpen                // OpenMetrics 1.0
	asProto               // delimited io.prometheus.client.MetricFamily
)

// negotiate picks the format for an Accept header: OpenMetrics or protobuf where it
// is named and plain text is not preferred to it, text in every other case, an
// Accept that allows none of them included.
func negotiate(accept []string) (contentType string, f format) {
	var qText, qOpen, qProto float64
	version := ""
	for typ, params := range ranges(accept) {
		q := quality(params)
		switch v := params["version"]; {
		case typ == "application/openmetrics-text" && (v == "" || v == "1.0.0" || v == "0.0.1"):
			if q > qOpen {
				qOpen, version = q, v
			}
		case typ == "application/vnd.google.protobuf" && params["encoding"] == "delimited" &&
			params["proto"] == "io.prometheus.client.MetricFamily":
			qProto = max(qProto, q)
		case typ == "text/plain" && (v == "" || v == "0.0.4"), typ == "text/*", typ == "*/*":
			qText = max(qText, q)
		}
	}
	switch {
	case qProto > 0 && qProto >= max(qOpen, qText):
		return typeProto, asProto
	case qOpen == 0 || qOpen < qText:
		return typeText, asText
	}
	if version == "" {
		version = "1.0.0"
	}
	return typeOpen + version + "; charset=utf-8", asOpen
}

// encoding picks how a body is compressed for an Accept-Encoding header: zstd, in a
// build that has it, or gzip, whichever is preferred, or not at all.
func encoding(accept []string) string {
	q := map[string]float64{}
	for enc, params := range ranges(accept) {
		if enc == "x-gzip" { // RFC 9110, 8.4.1.3
			enc = "gzip"
		}
		q[enc] = quality(params)
	}
	of := func(enc string) float64 {
		if v, ok := q[enc]; ok {
			return v
		}
		return q["*"]
	}
	gzip, zstd := of("gzip"), q["zstd"] // * is not to mean what few can read
	switch {
	case hasZstd && zstd > 0 && zstd >= gzip && zstd >= q["identity"]:
		return "zstd"
	case gzip > 0 && gzip >= q["identity"]:
		return "gzip"
	}
	return ""
}

// compressed is a writer to w in an encoding that encoding picked, and what ends it.
func compressed(w io.Writer, enc string) (io.Writer, func()) {
	switch enc {
	case "zstd":
		z := newZstd(w)
		return z, func() { _ = z.Close() }
	case "gzip":
		// Stateless compression keeps no memory between scrapes; a deflate state is
		// as large as the rest of the exporter's heap.
		z, err := gzip.NewWriterLevel(w, gzip.StatelessCompression)
		if err != nil {
			panic("BUG: expose: " + err.Error())
		}
		return z, func() { _ = z.Close() }
	}
	return w, func() {}
}

// ranges yields the elements of a list header with their parameters; one that
// cannot be read is passed over.
func ranges(values []string) func(yield func(string, map[string]string) bool) {
	return func(yield func(string, map[string]string) bool) {
		for _, v := range values {
			for part := range strings.SplitSeq(v, ",") {
				typ, params, err := mime.ParseMediaType(part)
				if err == nil && !yield(typ, params) {
					return
				}
			}
		}
	}
}

// quality is the weight of an element, 1 where none is given and 0 where it is
// nonsense.
func quality(params map[string]string) float64 {
	s, ok := params["q"]
	if !ok {
		return 1
	}
	q, err := strconv.ParseFloat(s, 64)
	if err != nil || !(q >= 0 && q <= 1) {
		return 0
	}
	return q
}
