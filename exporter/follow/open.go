package follow

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// Open asks the exporter at base for its ticks from now on. match are selectors of
// series; without one all are sent. The body ends when ctx is done.
func Open(ctx context.Context, base string, match ...string) (io.ReadCloser, error) {
	if !strings.HasPrefix(base, "http://") && !strings.HasPrefix(base, "https://") {
		return nil, fmt.Errorf("--url: %q does not begin with http:// or https://: write http:// before it", base)
	}
	q := url.Values{}
	for _, m := range match {
		q.Add("match[]", m)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(base, "/")+"/api/v1/stream?"+q.Encode(), nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		defer resp.Body.Close()
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 300))
		return nil, fmt.Errorf("the exporter answered %s: %s", resp.Status, strings.TrimSpace(string(text)))
	}
	return resp.Body, nil
}
