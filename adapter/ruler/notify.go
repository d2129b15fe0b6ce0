package ruler

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"time"

	promconfig "github.com/prometheus/common/config"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/discovery/targetgroup"
	"github.com/prometheus/prometheus/notifier"
	"github.com/prometheus/prometheus/rules"
)

const (
	// queueCapacity is how many alerts may wait for one Alertmanager; the oldest are
	// dropped and counted. Prometheus' own default.
	queueCapacity = 10_000
	// sendTimeout is the longest one request to an Alertmanager may take. Prometheus'
	// own default.
	sendTimeout = 10 * time.Second
)

// newNotifier makes the notifier for the addresses of c. What is under way is cut off
// when abort is done.
func newNotifier(c *Config, abort context.Context) (*notifier.Manager, map[string][]*targetgroup.Group, error) {
	n := notifier.NewManager(&notifier.Options{
		QueueCapacity:   queueCapacity,
		DrainOnShutdown: true,
		Registerer:      c.Registerer,
		Do: func(ctx context.Context, client *http.Client, req *http.Request) (*http.Response, error) {
			ctx, cancel := context.WithCancel(ctx)
			stop := context.AfterFunc(abort, cancel)
			defer stop()
			resp, err := c.do(ctx, client, req)
			if err != nil {
				cancel()
				return nil, err
			}
			resp.Body = &cancelBody{resp.Body, cancel}
			return resp, nil
		},
	}, model.UTF8Validation, c.Logger)
	conf := &config.Config{GlobalConfig: config.GlobalConfig{ExternalLabels: c.ExternalLabels, MetricNameValidationScheme: model.UTF8Validation}}
	for _, u := range c.Alertmanagers {
		conf.AlertingConfig.AlertmanagerConfigs = append(conf.AlertingConfig.AlertmanagerConfigs, alertmanager(u, c.HTTPClient))
	}
	if err := n.ApplyConfig(conf); err != nil {
		return nil, nil, err
	}
	targets := map[string][]*targetgroup.Group{}
	// ToMap names the configurations in their order: it says which target is whose.
	for key, am := range conf.AlertingConfig.AlertmanagerConfigs.ToMap() {
		for i, a := range conf.AlertingConfig.AlertmanagerConfigs {
			if a == am {
				targets[key] = []*targetgroup.Group{{Targets: []model.LabelSet{{model.AddressLabel: model.LabelValue(c.Alertmanagers[i].Host)}}}}
			}
		}
	}
	return n, targets, nil
}

// alertmanager is the configuration of one Alertmanager.
func alertmanager(u *url.URL, client *promconfig.HTTPClientConfig) *config.AlertmanagerConfig {
	a := &config.AlertmanagerConfig{
		HTTPClientConfig: promconfig.DefaultHTTPClientConfig,
		Scheme:           u.Scheme,
		PathPrefix:       u.Path,
		Timeout:          model.Duration(sendTimeout),
		APIVersion:       config.AlertmanagerAPIVersionV2,
	}
	if client != nil {
		a.HTTPClientConfig = *client
	}
	return a
}

// cancelBody gives a request's context back when its answer is read.
type cancelBody struct {
	io.ReadCloser
	cancel context.CancelFunc
}

// Close implements io.Closer.
func (b *cancelBody) Close() error {
	defer b.cancel()
	return b.ReadCloser.Close()
}

// sender is what notify needs of the notifier.
type sender interface{ Send(...*notifier.Alert) }

// notify hands alerts on. Each links to a query of its own expression. One that ends
// because its device is silent goes on.
func notify(to sender, external *url.URL, h *held) rules.NotifyFunc {
	return func(_ context.Context, expr string, alerts ...*rules.Alert) {
		link := external.JoinPath("api/v1/query")
		link.RawQuery = url.Values{"query": {expr}}.Encode()
		out := make([]*notifier.Alert, 0, len(alerts))
		for _, a := range alerts {
			n := &notifier.Alert{StartsAt: a.FiredAt, EndsAt: a.ValidUntil, Labels: a.Labels, Annotations: a.Annotations, GeneratorURL: link.String()}
			if !a.ResolvedAt.IsZero() {
				n.EndsAt = a.ResolvedAt
			}
			h.hold(n, !a.ResolvedAt.IsZero(), time.Now())
			out = append(out, n)
		}
		if len(out) > 0 {
			to.Send(out...)
		}
	}
}
