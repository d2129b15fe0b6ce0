package send

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// issuer signs certificates.
type issuer struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	n    int64
}

func newIssuer(t *testing.T, name string) *issuer {
	i := &issuer{t: t, dir: t.TempDir()}
	i.issue(name, time.Now().Add(-10*365*24*time.Hour), time.Now().Add(10*365*24*time.Hour))
	return i
}

// issue makes a certificate and the files with it and its key. The first is the
// issuer's own.
func (i *issuer) issue(name string, from, to time.Time) (certFile, keyFile string) {
	i.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		i.t.Fatal(err)
	}
	i.n++
	c := &x509.Certificate{SerialNumber: big.NewInt(i.n), Subject: pkix.Name{CommonName: name}, NotBefore: from, NotAfter: to,
		DNSNames: []string{name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, BasicConstraintsValid: true,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	parent, signer := i.cert, i.key
	if parent == nil {
		c.IsCA, c.KeyUsage, c.ExtKeyUsage = true, x509.KeyUsageCertSign, nil
		parent, signer, i.key = c, key, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer)
	if err != nil {
		i.t.Fatal(err)
	}
	if i.cert == nil {
		if i.cert, err = x509.ParseCertificate(der); err != nil {
			i.t.Fatal(err)
		}
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		i.t.Fatal(err)
	}
	certFile, keyFile = filepath.Join(i.dir, name+".crt"), filepath.Join(i.dir, name+".key")
	for file, b := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: der}, keyFile: {Type: "EC PRIVATE KEY", Bytes: keyDER}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(b), 0o600); err != nil {
			i.t.Fatal(err)
		}
	}
	return certFile, keyFile
}

// tlsServer answers 204, and notes whose certificate it was shown last.
func tlsServer(t *testing.T, i *issuer, name string, from, to time.Time, mutual bool) (*httptest.Server, *atomic.Value) {
	t.Helper()
	cert, err := tls.LoadX509KeyPair(i.issue(name, from, to))
	if err != nil {
		t.Fatal(err)
	}
	shown := &atomic.Value{}
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.TLS.PeerCertificates) > 0 {
			shown.Store(r.TLS.PeerCertificates[0].Subject.CommonName)
		}
		w.WriteHeader(http.StatusNoContent)
	}))
	srv.Config.ErrorLog = quiet()
	srv.TLS = &tls.Config{Certificates: []tls.Certificate{cert}}
	if mutual {
		srv.TLS.ClientCAs = x509.NewCertPool()
		srv.TLS.ClientCAs.AddCert(i.cert)
		srv.TLS.ClientAuth = tls.RequireAndVerifyClientCert
	}
	srv.StartTLS()
	t.Cleanup(srv.Close)
	return srv, shown
}

func TestTLS(t *testing.T) {
	ours, theirs := newIssuer(t, "ours"), newIssuer(t, "theirs")
	ca, otherCA := filepath.Join(ours.dir, "ours.crt"), filepath.Join(theirs.dir, "theirs.crt")
	now, day := time.Now(), 24*time.Hour
	device, deviceKey := ours.issue("device", now.Add(-day), now.Add(day))
	no := func() bool { return false }
	for _, c := range []struct {
		name     string
		from, to time.Duration // the server's certificate's
		mutual   bool
		tls      TLS
		wall     time.Duration // the clock's error
		synced   func() bool
		want     string // in the error; empty is none
		log      string
	}{
		{name: "ours", tls: TLS{CAFile: ca}},
		{name: "not ours", tls: TLS{CAFile: otherCA}, want: "unknown authority"},
		{name: "not the system's", want: "unknown authority"},
		{name: "insecure", tls: TLS{Insecure: true}, log: "ANY CERTIFICATE IS TAKEN"},
		{name: "server name", tls: TLS{CAFile: ca, ServerName: "receiver"}},
		{name: "another server name", tls: TLS{CAFile: ca, ServerName: "elsewhere"}, want: "elsewhere"},
		{name: "mutual", mutual: true, tls: TLS{CAFile: ca, CertFile: device, KeyFile: deviceKey}},
		{name: "mutual without", mutual: true, tls: TLS{CAFile: ca}, want: "certificate required"},
		{name: "expired", from: -2 * day, to: -day, tls: TLS{CAFile: ca}, want: "expired"},
		{name: "not yet valid", from: day, to: 2 * day, tls: TLS{CAFile: ca}, want: "not yet valid"},
		{name: "the clock is not set", wall: -50 * 365 * day, tls: TLS{CAFile: ca}, log: "not known to be right"},
		{name: "the clock is behind and nobody says it is right", wall: -30 * day, synced: no, tls: TLS{CAFile: ca}, log: "not known to be right"},
		{name: "the clock is ahead and nobody says it is right", wall: 30 * day, synced: no, tls: TLS{CAFile: ca}, log: "not known to be right"},
		{name: "expired before a time that is past", from: -1000 * day, to: -999 * day, wall: -50 * 365 * day, tls: TLS{CAFile: ca}, want: "expired"},
		{name: "not ours, and the clock is not set", wall: -50 * 365 * day, tls: TLS{CAFile: otherCA}, want: "unknown authority"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.to == 0 {
				c.from, c.to = -day, day
			}
			srv, shown := tlsServer(t, ours, "receiver", now.Add(c.from), now.Add(c.to), c.mutual)
			r, l := newRun(1, 1, 1), &logs{}
			cfg := r.config(nil, r.ring(), l)
			cfg.URL, cfg.Transport, cfg.TLS, cfg.Synced = srv.URL, nil, c.tls, c.synced
			cfg.NotBefore = now.Add(-10 * day).UnixMilli()
			cfg.Wall = func(int64) int64 { return now.Add(c.wall).UnixMilli() }
			s, err := New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			defer s.client.http.CloseIdleConnections()
			rep := s.client.post(context.Background(), V2, []byte{0}, origin{})
			if (rep.err == nil) != (c.want == "") || rep.err != nil && !strings.Contains(rep.err.Error(), c.want) {
				t.Errorf("got %v, want %q", rep.err, c.want)
			}
			if c.log != "" && l.count(c.log) != 1 || c.log == "" && l.String() != "" {
				t.Errorf("log: %s", l)
			}
			if c.mutual && c.want == "" && shown.Load() != "device" {
				t.Errorf("shown %v", shown.Load())
			}
		})
	}
}

// TestTLSReload: another certificate in the files is shown without a restart, and one
// that cannot be used leaves the old one in place.
func TestTLSReload(t *testing.T) {
	i := newIssuer(t, "ours")
	now, day := time.Now(), 24*time.Hour
	srv, shown := tlsServer(t, i, "receiver", now.Add(-day), now.Add(day), true)
	cert, key := i.issue("first", now.Add(-day), now.Add(day))
	r, l := newRun(1, 1, 1), &logs{}
	cfg := r.config(nil, r.ring(), l)
	cfg.URL, cfg.Transport = srv.URL, nil
	cfg.TLS = TLS{CAFile: filepath.Join(i.dir, "ours.crt"), CertFile: cert, KeyFile: key}
	cfg.Wall = func(int64) int64 { return now.UnixMilli() }
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { s.client.http.CloseIdleConnections() }()
	post := func(want string) {
		t.Helper()
		if rep := s.client.post(context.Background(), V2, []byte{0}, origin{}); rep.err != nil || shown.Load() != want {
			t.Errorf("%v, shown %v, want %s", rep.err, shown.Load(), want)
		}
	}
	post("first")
	if err := os.WriteFile(cert, []byte("half a certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	post("first")
	post("first")
	if n := l.count("new certificates cannot be used"); n != 1 {
		t.Errorf("said %d times:\n%s", n, l)
	}
	second, secondKey := i.issue("another", now.Add(-day), now.Add(day))
	for from, to := range map[string]string{second: cert, secondKey: key} {
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	post("another")
	if n := l.count("certificates are read again"); n != 1 {
		t.Errorf("said %d times:\n%s", n, l)
	}
}

// TestTLSFilesWrong: what cannot be used is an error at the start.
func TestTLSFilesWrong(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(file, []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []TLS{{CAFile: file}, {CAFile: file + "x"}, {CertFile: file, KeyFile: file}} {
		r := newRun(1, 1, 1)
		cfg := r.config(nil, r.ring(), &logs{})
		cfg.Transport, cfg.TLS = nil, c
		if _, err := New(cfg); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// TestProxy pushes through a proxy, or past that of the environment.
func TestProxy(t *testing.T) {
	var through atomic.Int64
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Host == "receiver.test" && r.Header.Get("Proxy-Authorization") != "" {
			through.Add(1)
		}
		w.WriteHeader(http.StatusNoContent)
	}))
	defer proxy.Close()
	u, err := url.Parse(proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword("u", "p")
	r := newRun(1, 1, 1)
	cfg := r.config(nil, r.ring(), &logs{})
	cfg.Transport, cfg.Proxy = nil, u
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer s.client.http.CloseIdleConnections()
	if rep := s.client.post(context.Background(), V2, []byte{0}, origin{}); rep.code != 204 || through.Load() != 1 {
		t.Errorf("%+v, %d through the proxy", rep, through.Load())
	}
	cfg.Proxy = &url.URL{}
	direct, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if tr, ok := direct.client.http.Transport.(*http.Transport); !ok || tr.Proxy != nil {
		t.Error("direct goes through a proxy")
	}
	cfg.Proxy = nil
	env, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if tr, ok := env.client.http.Transport.(*http.Transport); !ok || tr.Proxy == nil {
		t.Error("the environment's proxy is passed over")
	}
}
