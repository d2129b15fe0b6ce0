package access

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/model/labels"
)

// Config says which files there are. All empty leaves everything open.
type Config struct {
	// DeviceTokens is the token file for pushes; WebTokens that of readers and
	// administrators.
	DeviceTokens, WebTokens string
	// WebConfig is a file in exporter-toolkit's format.
	WebConfig string
	// Admins are the users of WebConfig that may administer.
	Admins []string

	Logger     *slog.Logger
	Registerer prometheus.Registerer
	Now        func() time.Time // nil is time.Now
}

// Access judges requests. It is safe for concurrent use.
type Access struct {
	cfg     Config
	devices *watched[Tokens] // nil: pushes need no token
	readers *watched[Tokens] // may be nil
	web     *watched[webConfig]
	refused *prometheus.CounterVec
}

// New reads the files; one that is wrong is an error.
func New(cfg Config) (*Access, error) {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	a := &Access{cfg: cfg, refused: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "ticktier_adapter_access_refused_total", Help: "Requests refused for who sends them, by the right that was needed and the reason."}, []string{"right", "reason"})}
	good := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "ticktier_adapter_access_file_good", Help: "Whether a file about access could be read when it changed last; 0 says that what it said before holds."}, []string{"file"})
	if cfg.Registerer != nil {
		cfg.Registerer.MustRegister(a.refused, good)
	}
	var err error
	if cfg.DeviceTokens != "" {
		if a.devices, err = watch(cfg.DeviceTokens, "devices.tokens-file", ParseTokens, cfg.Logger, good.WithLabelValues("devices.tokens-file")); err != nil {
			return nil, fmt.Errorf("--devices.tokens-file: %w", err)
		}
	}
	if cfg.WebTokens != "" {
		if a.readers, err = watch(cfg.WebTokens, "web.tokens-file", ParseTokens, cfg.Logger, good.WithLabelValues("web.tokens-file")); err != nil {
			return nil, fmt.Errorf("--web.tokens-file: %w", err)
		}
	}
	if cfg.WebConfig != "" {
		if err := CheckWeb(cfg.WebConfig); err != nil {
			return nil, fmt.Errorf("--web.config.file: %w", err)
		}
		parse := func(b []byte) (*webConfig, error) { return parseWeb(filepath.Dir(cfg.WebConfig), b) }
		if a.web, err = watch(cfg.WebConfig, "web.config.file", parse, cfg.Logger, good.WithLabelValues("web.config.file")); err != nil {
			return nil, fmt.Errorf("--web.config.file: %w", err)
		}
	}
	return a, nil
}

// Run reads files again when they change, until ctx is done.
func (a *Access) Run(ctx context.Context) error {
	look(ctx, a.reload)
	return nil
}

// Reload reads all files again.
func (a *Access) Reload() error { return a.reload(true) }

func (a *Access) reload(must bool) error {
	var first error
	keep := func(err error) {
		if first == nil {
			first = err
		}
	}
	if a.devices != nil {
		keep(a.devices.reload(must))
	}
	if a.readers != nil {
		keep(a.readers.reload(must))
	}
	if a.web != nil {
		keep(a.web.reload(must))
	}
	return first
}

// Guarded tells whether reading needs credentials, Identified whether pushes do.
func (a *Access) Guarded() bool {
	return a.readers != nil || a.web != nil && len(a.web.now.Load().users) > 0
}

// Identified tells whether pushes need a device's token.
func (a *Access) Identified() bool { return a.devices != nil }

// TLS is the configuration to serve with, nil for none. Certificates and the rest are
// those of the file as it is when a connection comes.
func (a *Access) TLS() *tls.Config {
	if a.web == nil || a.web.now.Load().tls == nil {
		return nil
	}
	first := a.web.now.Load().tls
	c := first.Clone()
	c.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		if now := a.web.now.Load().tls; now != nil {
			return now, nil
		}
		return first, nil // it says nothing of TLS any more: plain text needs a restart
	}
	return c
}

// Entry is what becomes of a push.
type Entry struct {
	// Labels are forced on every series, ordered by name; nil for none. They are
	// shared and not to be changed.
	Labels []labels.Label
	// Status is 0 for a push that may come in, else the answer's, with Text and, for
	// 401, the challenge of WWW-Authenticate.
	Status          int
	Text, Challenge string
}

// entryOf is the entry of a valid token.
func entryOf(t *Token) *Entry {
	e := &Entry{}
	for name, value := range t.Labels {
		e.Labels = append(e.Labels, labels.Label{Name: name, Value: value})
	}
	slices.SortFunc(e.Labels, func(a, b labels.Label) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	return e
}

// Enter judges a push, before its body is read.
func (a *Access) Enter(r *http.Request) Entry {
	if a.devices == nil {
		if !a.Guarded() {
			return Entry{}
		}
		if why := a.judge(r, RightWrite); why != "" {
			e := a.deny(RightWrite, why)
			if e.Challenge != "" && a.web != nil && len(a.web.now.Load().users) > 0 {
				e.Challenge = basicChallenge
			}
			return e
		}
		return Entry{}
	}
	set := a.devices.now.Load()
	t, state := identify(set, r, a.cfg.Now())
	if state == StateValid && t.may(RightWrite) {
		return *set.forced[t]
	}
	if t == nil && a.Guarded() && a.judge(r, RightAdmin) == "" {
		return Entry{} // who may do all may also fill in for others
	}
	if state == StateValid {
		state = stateForbidden
	}
	return a.deny(RightWrite, state)
}

// Two more reasons to refuse.
const (
	stateNone      State = "missing"
	stateForbidden State = "not for this"
)

// identify finds who a request is from by its token, or by its certificate.
func identify(set *Tokens, r *http.Request, now time.Time) (*Token, State) {
	if secret, ok := bearer(r); ok {
		t := set.find(secret)
		if t == nil {
			return nil, StateUnknown
		}
		return t, t.At(now)
	}
	if t := set.certified(r.TLS); t != nil {
		return t, t.At(now)
	}
	return nil, stateNone
}

// certified is the entry for the certificate of a connection, if it was verified.
func (s *Tokens) certified(c *tls.ConnectionState) *Token {
	if len(s.byName) == 0 || c == nil || len(c.VerifiedChains) == 0 {
		return nil
	}
	leaf := c.PeerCertificates[0]
	for _, name := range leaf.DNSNames {
		if t := s.byName[name]; t != nil {
			return t
		}
	}
	for _, u := range leaf.URIs {
		if t := s.byName[u.String()]; t != nil {
			return t
		}
	}
	if len(leaf.DNSNames)+len(leaf.URIs) == 0 {
		return s.byName[leaf.Subject.CommonName]
	}
	return nil
}

func (a *Access) deny(need Right, why State) Entry {
	a.refused.WithLabelValues(string(need), string(why)).Inc()
	if why == stateForbidden {
		return Entry{Status: http.StatusForbidden, Text: "these credentials are not for this"}
	}
	e := Entry{Status: http.StatusUnauthorized, Challenge: `Bearer realm="ticktier"`, Text: "a token is needed: Authorization: Bearer TOKEN"}
	switch why {
	case stateNone:
	case StateUnknown:
		e.Challenge += `, error="invalid_token"`
		e.Text = "the credentials are not known"
	default:
		e.Challenge += `, error="invalid_token"`
		e.Text = "the token is " + string(why)
	}
	return e
}

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was read
	return io.ReadAll(io.LimitReader(f, maxFileBytes+1))
}
