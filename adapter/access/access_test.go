package access

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"golang.org/x/crypto/bcrypt"
)

var testNow = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

const (
	deviceToken  = "tta_the-device-s-own-token"
	expiredToken = "tta_the-device-s-old-token"
	revokedToken = "tta_the-device-s-lost-token"
	earlyToken   = "tta_the-device-s-next-token"
	readToken    = "tta_the-reader-s-own-token"
	adminToken   = "tta_the-admin-s-own-token"
)

func tokenLine(id, secret, fields string) string {
	return "- {id: " + id + ", hash: \"" + HashOf(secret) + "\", " + fields + "}\n"
}

// write puts a file in place as editors do, so that its identity changes.
func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// setUp makes an Access with everything on; change may turn things off.
func setUp(t *testing.T, change func(*Config)) (*Access, *bytes.Buffer) {
	t.Helper()
	dir := t.TempDir()
	hash := func(password string) string {
		h, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost)
		if err != nil {
			t.Fatal(err)
		}
		return string(h)
	}
	write(t, filepath.Join(dir, "devices.yml"), "tokens:\n"+
		tokenLine("now", deviceToken, "labels: {instance: r1}")+
		tokenLine("old", expiredToken, "labels: {instance: r1}, until: 2026-06-01T11:59:59Z")+
		tokenLine("lost", revokedToken, "labels: {instance: r1}, revoked: 2026-06-01T11:00:00Z")+
		tokenLine("next", earlyToken, "labels: {instance: r1}, from: 2026-07-01T00:00:00Z")+
		"- {id: mtls, certificate: r2.example, labels: {instance: r2}}\n")
	write(t, filepath.Join(dir, "readers.yml"), "tokens:\n"+tokenLine("reader", readToken, "right: read")+tokenLine("admin", adminToken, "right: admin"))
	write(t, filepath.Join(dir, "web.yml"), "basic_auth_users:\n  ann: "+hash("ann's")+"\n  root: "+hash("root's")+"\nhttp_server_config:\n  headers:\n    X-Frame-Options: deny\n")
	var log bytes.Buffer
	cfg := Config{
		DeviceTokens: filepath.Join(dir, "devices.yml"), WebTokens: filepath.Join(dir, "readers.yml"), WebConfig: filepath.Join(dir, "web.yml"),
		Admins: []string{"root"}, Now: func() time.Time { return testNow }, Logger: slog.New(slog.NewTextHandler(&log, nil)), Registerer: prometheus.NewRegistry(),
	}
	if change != nil {
		change(&cfg)
	}
	a, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return a, &log
}

func request(method, path, authorization string) *http.Request {
	r := httptest.NewRequest(method, path, nil)
	if user, password, ok := strings.Cut(authorization, "\x00"); ok {
		r.SetBasicAuth(user, password)
	} else if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	return r
}

func TestEnter(t *testing.T) {
	all, _ := setUp(t, nil)
	onlyDevices, _ := setUp(t, func(c *Config) { c.WebTokens, c.WebConfig, c.Admins = "", "", nil })
	onlyReaders, _ := setUp(t, func(c *Config) { c.DeviceTokens = "" })
	open, _ := setUp(t, func(c *Config) { *c = Config{} })
	for _, tc := range []struct {
		name, auth string
		all        int // with everything
		devices    int // with devices' tokens alone
		readers    int // with users and readers' tokens alone
	}{
		{"nobody", "", 401, 401, 401},
		{"the device", "Bearer " + deviceToken, 0, 0, 401},
		{"the device in other letters", "bEARER  " + deviceToken, 0, 0, 401},
		{"a guess", "Bearer tta_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", 401, 401, 401},
		{"the hash", "Bearer " + HashOf(deviceToken), 401, 401, 401},
		{"expired", "Bearer " + expiredToken, 401, 401, 401},
		{"revoked", "Bearer " + revokedToken, 401, 401, 401},
		{"early", "Bearer " + earlyToken, 401, 401, 401},
		{"another scheme", "Token " + deviceToken, 401, 401, 401},
		{"a reader's token", "Bearer " + readToken, 401, 401, 403},
		{"a reader", "ann\x00ann's", 401, 401, 0},
		{"a wrong password", "ann\x00root's", 401, 401, 401},
		{"an admin", "root\x00root's", 0, 401, 0},
		{"an admin's token", "Bearer " + adminToken, 0, 401, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := request(http.MethodPost, "/api/v1/write", tc.auth)
			for _, x := range []struct {
				name string
				a    *Access
				want int
			}{{"all", all, tc.all}, {"devices", onlyDevices, tc.devices}, {"readers", onlyReaders, tc.readers}, {"open", open, 0}} {
				e := x.a.Enter(r)
				if e.Status != x.want || (e.Status == 401) != (e.Challenge != "") {
					t.Errorf("%s: status %d, want %d; challenge %q", x.name, e.Status, x.want, e.Challenge)
				}
				if strings.Contains(e.Text+e.Challenge, "tta_") {
					t.Errorf("%s: the answer shows a token: %q", x.name, e.Text)
				}
				forced := x.want == 0 && (x.a == all || x.a == onlyDevices) && strings.Contains(tc.auth, deviceToken)
				if forced != (len(e.Labels) > 0 && e.Labels[0].Value == "r1") {
					t.Errorf("%s: labels %v", x.name, e.Labels)
				}
			}
		})
	}
	if got := testutil.ToFloat64(all.refused.WithLabelValues("write", "revoked")); got != 1 {
		t.Errorf("%v refusals of revoked tokens are counted, want 1", got)
	}
}

func TestCertificate(t *testing.T) {
	a, _ := setUp(t, nil)
	leaf := &x509.Certificate{DNSNames: []string{"r2.example"}}
	r := request(http.MethodPost, "/api/v1/write", "")
	r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{leaf}}
	if e := a.Enter(r); e.Status != 401 {
		t.Errorf("a certificate that nobody verified is let in: %+v", e)
	}
	r.TLS.VerifiedChains = [][]*x509.Certificate{{leaf}}
	if e := a.Enter(r); e.Status != 0 || len(e.Labels) != 1 || e.Labels[0].Value != "r2" {
		t.Errorf("the certificate is answered with %+v", e)
	}
	leaf.DNSNames[0] = "r3.example"
	if e := a.Enter(r); e.Status != 401 {
		t.Errorf("another certificate is let in: %+v", e)
	}
}

func TestHandlers(t *testing.T) {
	all, _ := setUp(t, nil)
	onlyDevices, _ := setUp(t, func(c *Config) { c.WebTokens, c.WebConfig, c.Admins = "", "", nil })
	handler := func(a *Access) http.Handler {
		ok := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {})
		mux := http.NewServeMux()
		mux.Handle("/", ok)
		mux.Handle("DELETE /", a.Admin(ok))
		return a.Handler(mux, "/api/v1/write", "/-/healthy")
	}
	for _, tc := range []struct {
		auth                      string
		page, remove, open, trick int
	}{
		{"", 401, 401, 200, 401},
		{"Bearer " + deviceToken, 401, 401, 200, 401},
		{"Bearer " + readToken, 200, 403, 200, 200},
		{"Bearer " + adminToken, 200, 200, 200, 200},
		{"ann\x00ann's", 200, 403, 200, 200},
		{"ann\x00", 401, 401, 200, 401},
		{"nobody\x00ann's", 401, 401, 200, 401},
		{"root\x00root's", 200, 200, 200, 200},
	} {
		for _, x := range []struct {
			method, path string
			want         int
		}{
			{"GET", "/", tc.page}, {"GET", "/api/v1/query", tc.page}, {"DELETE", "/api/v1/devices/r1", tc.remove},
			{"GET", "/-/healthy", tc.open}, {"GET", "/api/v1%2Fwrite", tc.trick}, {"GET", "/-/%68ealthy", tc.trick},
		} {
			w := httptest.NewRecorder()
			handler(all).ServeHTTP(w, request(x.method, x.path, tc.auth))
			if w.Code != x.want {
				t.Errorf("%q: %s %s: status %d, want %d", tc.auth, x.method, x.path, w.Code, x.want)
			}
			if n := len(w.Header().Values("WWW-Authenticate")); (n == 2) != (w.Code == 401) {
				t.Errorf("%q: %s %s: %d challenges with status %d", tc.auth, x.method, x.path, n, w.Code)
			}
			if w.Header().Get("X-Frame-Options") != "deny" {
				t.Error("the header of the file is missing")
			}
			w = httptest.NewRecorder()
			if handler(onlyDevices).ServeHTTP(w, request(x.method, x.path, tc.auth)); w.Code != 200 {
				t.Errorf("%q: %s %s: status %d where reading is open", tc.auth, x.method, x.path, w.Code)
			}
		}
	}
	r := request("DELETE", "/api/v1/devices/r1", "root\x00root's")
	r.Header.Set("Origin", "https://elsewhere.example")
	w := httptest.NewRecorder()
	if handler(all).ServeHTTP(w, r); w.Code != http.StatusForbidden {
		t.Errorf("another site's request: status %d", w.Code)
	}
}

func TestReload(t *testing.T) {
	a, log := setUp(t, nil)
	path := a.cfg.DeviceTokens
	status := func() int { return a.Enter(request("POST", "/", "Bearer "+deviceToken)).Status }
	good := func() float64 { return testutil.ToFloat64(a.devices.good) }
	if status() != 0 || good() != 1 {
		t.Fatal("the token is not let in")
	}
	write(t, path, "tokens: [{id: a, hash: "+deviceToken+"}]")
	if err := a.reload(false); err == nil {
		t.Error("a file that is wrong is taken")
	}
	_ = a.reload(false)
	if status() != 0 || good() != 0 {
		t.Error("what the file said last does not hold")
	}
	if n := strings.Count(log.String(), "goes on to hold"); n != 1 {
		t.Errorf("the log says %d times that the file is wrong:\n%s", n, log)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := a.reload(false); err == nil || status() != 0 {
		t.Error("a file that is gone is no error, or lets nobody in")
	}
	write(t, path, "tokens:\n"+tokenLine("now", deviceToken, "labels: {instance: r1}, revoked: 2026-06-01T11:00:00Z"))
	if err := a.reload(false); err != nil || status() != 401 || good() != 1 {
		t.Errorf("the new file does not hold: %v", err)
	}
	write(t, path, "tokens:\n"+tokenLine("now", deviceToken, "labels: {instance: r1}"))
	if err := a.Reload(); err != nil || status() != 0 {
		t.Errorf("the new file does not hold: %v", err)
	}
	if strings.Contains(log.String(), "tta_") {
		t.Errorf("the log shows a token:\n%s", log)
	}
}

func TestNewRefusesBadFiles(t *testing.T) {
	dir := t.TempDir()
	bad := filepath.Join(dir, "bad.yml")
	write(t, bad, "basic_auth_users: {ann: plain-password}")
	for flag, cfg := range map[string]Config{
		"--devices.tokens-file": {DeviceTokens: bad}, "--web.tokens-file": {WebTokens: filepath.Join(dir, "none")}, "--web.config.file": {WebConfig: bad},
	} {
		if _, err := New(cfg); err == nil || !strings.HasPrefix(err.Error(), flag) || strings.Contains(err.Error(), "plain-password") {
			t.Errorf("%s: %v", flag, err)
		}
	}
}

func TestEdit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens.yml")
	var wg sync.WaitGroup
	ids := []string{"a", "b", "c", "d", "e", "f", "g", "h"}
	for _, id := range ids {
		wg.Go(func() {
			err := Edit(path, func(list []Token) ([]Token, error) {
				_, hash := NewSecret()
				return append(list, Token{ID: id, Hash: hash, Labels: map[string]string{"instance": id}}), nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	set, err := ParseTokens(b)
	if err != nil || len(set.list) != len(ids) {
		t.Fatalf("%d tokens of %d are in the file: %v\n%s", len(set.list), len(ids), err, b)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v: %v", info.Mode(), err)
	}
	if err := Edit(path, func(list []Token) ([]Token, error) { return append(list, Token{ID: "a"}), nil }); err == nil {
		t.Error("a token that is not valid is written")
	}
	if after, _ := os.ReadFile(path); !bytes.Equal(after, b) {
		t.Error("an edit that failed changed the file")
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".*")); len(left) > 0 {
		t.Errorf("files are left over: %v", left)
	}
}
