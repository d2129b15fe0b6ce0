package expose

import (
	"mime"
	"strconv"
	"strings"
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

// acceptsGzip reports whether an Accept-Encoding header allows gzip.
func acceptsGzip(accept []string) bool {
	any := false
	for enc, params := range ranges(accept) {
		switch enc {
		case "gzip":
			return quality(params) > 0
		case "*":
			any = quality(params) > 0
		}
	}
	return any
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
