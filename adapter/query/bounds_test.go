package query

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// What would take all memory or keep the parser busy is refused before anything is
// done, with what to change.
func TestExpressionsThatAreTooLarge(t *testing.T) {
	_, srv := served(t)
	ask := func(path, query string, more ...string) (int, string) {
		v := url.Values{"query": {query}}
		for i := 0; i+1 < len(more); i += 2 {
			v.Set(more[i], more[i+1])
		}
		resp, err := http.PostForm(srv.URL+path, v)
		if err != nil {
			t.Fatal(err)
		}
		r := decode(t, resp)
		return resp.StatusCode, r.Error
	}
	deep := strings.Repeat("(", 20_000) + "1" + strings.Repeat(")", 20_000)
	for name, tc := range map[string]struct {
		path, query string
		more        []string
		want        string // in the error; empty for none
	}{
		"fine steps over months": {"/api/v1/query", `absent_over_time(zz[90d:1ms])`, nil, "at most 2000000"},
		"of no series":           {"/api/v1/query", `max_over_time(vector(1)[90d:1ms])`, nil, "longer step or a shorter range"},
		"nested":                 {"/api/v1/query", `max_over_time(max_over_time(vector(1)[1h:1ms])[30d:1h])`, nil, "at most 2000000"},
		"over a range":           {"/api/v1/query_range", `max_over_time(vector(1)[10m:1ms])`, []string{"start", "0", "end", "86400", "step", "60"}, "at most 2000000"},
		"at one time of a range": {"/api/v1/query_range", `max_over_time(vector(1)[1m:1ms] @ 1000)`, []string{"start", "0", "end", "86400", "step", "3600"}, ""},
		"half an hour by ms":     {"/api/v1/query", `max_over_time(vector(1)[30m:1ms])`, nil, ""},
		"months by minutes":      {"/api/v1/query", `max_over_time(vector(1)[90d:1m])`, nil, ""},
		"deep":                   {"/api/v1/query", deep, nil, "nested 20000 deep"},
		"deep, to be formatted":  {"/api/v1/format_query", deep, nil, "nested 20000 deep"},
		"long":                   {"/api/v1/query", strings.Repeat("1+", 100_000) + "1", nil, "bytes"},
		"not too deep":           {"/api/v1/query", strings.Repeat("(", 100) + "1" + strings.Repeat(")", 100), nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			code, text := ask(tc.path, tc.query, tc.more...)
			if (code == 200) != (tc.want == "") || !strings.Contains(text, tc.want) || len(text) > 1000 {
				t.Errorf("status %d, %.300q; want an error with %q", code, text, tc.want)
			}
		})
	}
}
