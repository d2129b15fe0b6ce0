package query

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/klauspost/compress/gzhttp"
	"github.com/klauspost/compress/gzip"
)

// leastCompressed is how many bytes an answer must have to be worth compressing.
const leastCompressed = 1 << 10

// compressed compresses what next answers, with what the client accepts, at the level
// that costs least: of an answer to a query, the default level costs more than all the
// rest. Binary answers, which remote read compresses itself, stay as they are.
func compressed(next http.Handler) (http.Handler, error) {
	wrap, err := gzhttp.NewWrapper(
		gzhttp.MinSize(leastCompressed), gzhttp.CompressionLevel(gzip.BestSpeed),
		gzhttp.ContentTypeFilter(func(ct string) bool {
			return strings.HasPrefix(ct, "application/json") || strings.HasPrefix(ct, "text/") || strings.HasPrefix(ct, "application/openmetrics-text")
		}))
	if err != nil {
		return nil, fmt.Errorf("prepare the compression of answers: %w", err)
	}
	// Prometheus' own handlers compress too, where they are asked to.
	plain := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept-Encoding") != "" {
			r2 := *r
			r2.Header = r.Header.Clone()
			r2.Header.Del("Accept-Encoding")
			r = &r2
		}
		next.ServeHTTP(w, r)
	})
	return wrap(plain), nil
}
