package e2e

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ticktier/ticktier/e2e/client"
	"github.com/ticktier/ticktier/e2e/program"
)

// clockExporter is an exporter whose wall clock a file moves: exporter/tick/wall_injected.go.
// The real clock of a machine cannot be set for one process, and time namespaces do not
// have it.
var clockExporter = sync.OnceValues(func() (string, error) {
	dir, err := makeDir()
	if err != nil {
		return "", err
	}
	out := filepath.Join(dir, "ticktier-exporter")
	cmd := exec.Command("go", "build", "-trimpath", "-tags", "nethttpomithttp2,nopprof,ticktier_testclock", "-o", out, "./exporter")
	cmd.Dir = ".."
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if msg, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, msg)
	}
	return out, nil
})

// movedClock is the file that moves an exporter's clock.
type movedClock string

// set makes the clock differ from the true time.
func (c movedClock) set(t testing.TB, by time.Duration) {
	t.Helper()
	tmp := string(c) + ".tmp"
	err := os.WriteFile(tmp, []byte(strconv.FormatInt(int64(by), 10)), 0o600)
	if err == nil {
		err = os.Rename(tmp, string(c))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// in1970 is by how much a clock is moved that stands at 1970-01-01 00:00:40.
func in1970() time.Duration { return 40*time.Second - time.Duration(time.Now().UnixNano()) }

func startClockExporter(t testing.TB, c movedClock, args ...string) *app {
	t.Helper()
	path, err := clockExporter()
	if err != nil {
		t.Fatal(err)
	}
	return start(t, program.Config{Name: "exporter", Path: path, Env: []string{"TICKTIER_TEST_CLOCK=" + string(c)},
		Args: append([]string{"run", "--listen=127.0.0.1:0", "--rate=10", "--remote-write.interval=500ms", "--shutdown.timeout=2s"}, args...)}, "/-/ready")
}

// TestClock takes an exporter through what a router's clock does: it starts in 1970, is
// started again there, set, stepped back, and forward by a day and back again.
func TestClock(t *testing.T) {
	t.Parallel()
	adapter := startAdapter(t, t.TempDir())
	clock := movedClock(filepath.Join(t.TempDir(), "clock"))
	clock.set(t, in1970())
	args := []string{"--spool.dir=" + t.TempDir(), "--remote-write.url=" + adapter.URL("/api/v1/write")}
	first := startClockExporter(t, clock, args...)
	started := nowMs()
	pause(t, 9*time.Second)
	first.stop(t)
	stopped := nowMs()
	if !strings.Contains(first.Log(), "clock is not set, nothing is sent") {
		t.Error("the log does not say that the clock is not set")
	}
	exporter := startClockExporter(t, clock, args...)
	pause(t, 5*time.Second)
	if r, err := adapter.Query(t.Context(), everyTick+"[1000h]", nowMs()); err != nil || len(r.Series) > 0 {
		t.Errorf("stored while the clock was not set: %v", err)
	}
	clock.set(t, 0)
	pause(t, 6*time.Second)
	delivered(t, exporter, adapter, 30*time.Second)

	before, _ := split(samplesOf(t, adapter, started-60_000, nowMs()), stopped)
	if n := len(before); n < 70 || before[0].T < started-1500 || before[n-1].T < stopped-1500 {
		t.Errorf("%d samples of the session whose clock was never set, which ran from %d to %d: %v", n, started, stopped, ends(before))
	}

	const back = 20 * time.Second
	clock.set(t, -back)
	lost := func() float64 {
		v, err := exporter.Metric(t.Context(), "ticktier_exporter_remote_write_ticks_lost_total")
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	pause(t, back)
	eventually(t, 20*time.Second, "the clock has come past what was sent", func(ctx context.Context) error {
		if !strings.Contains(exporter.Log(), "ticks left out after a step of the clock") {
			return fmt.Errorf("not yet")
		}
		return nil
	})
	if n := lost(); n < 150 || n > 260 {
		t.Errorf("%v ticks are counted as left out, of %v at 10 Hz", n, back)
	}
	clock.set(t, 24*time.Hour)
	pause(t, 5*time.Second)
	clock.set(t, -back)
	pause(t, 3*time.Second)
	if !strings.Contains(exporter.Log(), "contradicted by the receiver") {
		t.Error("the log does not say that the clock is contradicted")
	}
	end := nowMs() - back.Milliseconds() - 3000
	eventually(t, 20*time.Second, "what was sampled meanwhile is there", func(ctx context.Context) error {
		r, err := adapter.Query(ctx, everyTick+"[60s]", nowMs())
		if err != nil || len(r.Series) != 1 || last(r.Series[0]).T < end {
			return fmt.Errorf("not yet, %v", err)
		}
		return nil
	})
	if r, err := adapter.Query(t.Context(), everyTick+"[23h]", nowMs()+24*3600_000); err != nil || len(r.Series) > 0 {
		t.Errorf("stored in the future: %v", err)
	}
	pause(t, 1500*time.Millisecond) // its own figures are a second old
	checkCount(t, "after the steps", adapter, stopped+2000, end, 100, lost())
}

func ends(s []client.Sample) string {
	if len(s) == 0 {
		return "none"
	}
	return fmt.Sprint(s[0].T, " to ", s[len(s)-1].T)
}

// TestClockOfReceiver: with --clock.source=receiver a clock that is never set is no
// hindrance, and neither are certificates of both sides, which are not valid in 1970.
func TestClockOfReceiver(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	adapter := startAdapter(t, t.TempDir())
	f := startSecureFront(t, "http://"+adapter.addr, dir)
	token := writeFile(t, dir, "token", "token-secret\n")
	clock := movedClock(filepath.Join(dir, "clock"))
	clock.set(t, in1970())
	exporter := startClockExporter(t, clock, "--clock.source=receiver", "--remote-write.tls-ca-file="+filepath.Join(dir, "cert.pem"),
		"--remote-write.bearer-token-file="+token, "--remote-write.header=X-Key=header-secret",
		"--remote-write.url="+f.URL+"/api/v1/write#tls-cert-file="+filepath.Join(dir, "cert.pem")+"&tls-key-file="+filepath.Join(dir, "key.pem"))
	started := nowMs()
	start := ticking(t, adapter)
	if start < started-2500 || start > nowMs()+1500 {
		t.Errorf("the first sample is of %d, the exporter was started at %d", start, started)
	}
	pause(t, 5*time.Second)
	checkCount(t, "the receiver's clock", adapter, start, nowMs()-2000, 100, 0)
	if !strings.Contains(exporter.Log(), "is checked against a time that is past for sure") {
		t.Error("the log does not say how the certificate was checked")
	}
	skew, err := exporter.Metric(t.Context(), "ticktier_exporter_remote_write_clock_skew_seconds")
	if err != nil || skew < -2 || skew > 2 {
		t.Errorf("a skew of %v, %v", skew, err)
	}
	body, err := exporter.Get(t.Context(), "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{string(body), exporter.Log()} {
		if strings.Contains(text, "secret") || strings.Contains(text, "tls-key-file=") {
			t.Error("a secret, or what is behind # in the URL, shows")
		}
	}
}

// startSecureFront is a front that speaks TLS and demands the certificate that it also
// shows, which it puts into dir.
func startSecureFront(t testing.TB, target, dir string) *front {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, BasicConstraintsValid: true, IsCA: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
	writeFile(t, dir, "cert.pem", string(certPEM))
	writeFile(t, dir, "key.pem", string(keyPEM))
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(certPEM)
	return startFrontWith(t, target, func(s *httptest.Server) {
		s.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert}
		s.StartTLS()
	})
}
