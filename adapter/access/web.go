package access

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"sync"

	"github.com/prometheus/exporter-toolkit/web"
	"go.yaml.in/yaml/v3"
	"golang.org/x/crypto/bcrypt"
	"golang.org/x/time/rate"
)

// webConfig is what a web configuration file says. It does not change, but for what it
// remembers of passwords.
type webConfig struct {
	users   map[string][]byte // bcrypt hashes
	decoy   []byte            // the hash for users that are not there
	headers map[string]string
	tls     *tls.Config // nil: none
	http2   bool
	limiter *rate.Limiter // nil: none

	mu   sync.Mutex                     // one bcrypt at a time: it is made to cost much
	good map[[sha256.Size]byte]struct{} // guarded by mu: of user and password, found right
}

// maxRemembered bounds the passwords that are remembered to be right.
const maxRemembered = 1000

// parseWeb reads exporter-toolkit's format. Paths in it are relative to dir.
func parseWeb(dir string, b []byte) (*webConfig, error) {
	c := web.Config{HTTPConfig: web.HTTPConfig{HTTP2: true}}
	c.TLSConfig.MinVersion, c.TLSConfig.MaxVersion = tls.VersionTLS12, tls.VersionTLS13
	d := yaml.NewDecoder(bytes.NewReader(b))
	d.KnownFields(true)
	if err := d.Decode(&c); err != nil && !errors.Is(err, io.EOF) {
		return nil, hideValues(err)
	}
	c.TLSConfig.SetDirectory(dir)
	w := &webConfig{users: map[string][]byte{}, headers: c.HTTPConfig.Header, http2: c.HTTPConfig.HTTP2, good: map[[sha256.Size]byte]struct{}{}}
	cost := bcrypt.MinCost
	for user, hash := range c.Users {
		n, err := bcrypt.Cost([]byte(hash))
		if err != nil {
			return nil, fmt.Errorf("basic_auth_users: the password of %q is no bcrypt hash", clip(user))
		}
		cost = max(cost, n)
		w.users[user] = []byte(hash)
	}
	if len(w.users) > 0 {
		noise := make([]byte, 32)
		rand.Read(noise)
		var err error
		if w.decoy, err = bcrypt.GenerateFromPassword(noise, cost); err != nil {
			return nil, err
		}
	}
	if c.RateLimiterConfig.Interval > 0 {
		w.limiter = rate.NewLimiter(rate.Every(c.RateLimiterConfig.Interval), c.RateLimiterConfig.Burst)
	}
	if c.TLSConfig.IsEnabled() {
		var err error
		if w.tls, err = web.ConfigToTLSConfig(&c.TLSConfig); err != nil {
			return nil, fmt.Errorf("tls_server_config: %w", err)
		}
		w.tls.NextProtos = []string{"http/1.1"}
		if w.http2 {
			w.tls.NextProtos = []string{"h2", "http/1.1"}
		}
	}
	return w, nil
}

// CheckWeb says what is wrong with a web configuration file: the toolkit's judgement,
// and ours.
func CheckWeb(path string) error {
	if err := web.Validate(path); err != nil {
		return err
	}
	b, err := readFile(path)
	if err != nil {
		return err
	}
	_, err = parseWeb(filepath.Dir(path), b)
	return err
}

// password tells whether a user has that password. A user that is not there takes as
// long as one whose password is wrong.
func (w *webConfig) password(user, password string) bool {
	h := sha256.New()
	fmt.Fprintf(h, "%d:%s%s", len(user), user, password)
	key := [sha256.Size]byte(h.Sum(nil))
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, ok := w.good[key]; ok {
		return true
	}
	hash, known := w.users[user]
	if !known {
		hash = w.decoy
	}
	if bcrypt.CompareHashAndPassword(hash, []byte(password)) != nil || !known {
		return false
	}
	if len(w.good) >= maxRemembered {
		clear(w.good)
	}
	w.good[key] = struct{}{}
	return true
}
