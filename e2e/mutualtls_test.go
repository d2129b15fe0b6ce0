package e2e

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ticktier/ticktier/e2e/program"
)

// authority signs certificates for a test.
type authority struct {
	dir    string
	cert   *x509.Certificate
	key    *ecdsa.PrivateKey
	serial int64
}

// issue writes NAME.pem and NAME.key; the first certificate is the authority's own.
func (a *authority) issue(t *testing.T, name string, ips []net.IP, names ...string) (certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	a.serial++
	c := &x509.Certificate{
		SerialNumber: big.NewInt(a.serial), Subject: pkix.Name{CommonName: name}, DNSNames: names, IPAddresses: ips,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), BasicConstraintsValid: true, IsCA: a.cert == nil,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	own := a.cert == nil
	if own {
		a.cert, a.key = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, a.cert, &key.PublicKey, a.key)
	if err == nil && own {
		a.cert, err = x509.ParseCertificate(der)
	}
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return writeFile(t, a.dir, name+".pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))),
		writeFile(t, a.dir, name+".key", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})))
}

// TestMutualTLS: an exporter that shows a certificate is the device that the token file
// says; one whose certificate another authority signed is nobody.
func TestMutualTLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ca := &authority{dir: dir}
	caFile, _ := ca.issue(t, "ca", nil)
	serverCert, serverKey := ca.issue(t, "server", []net.IP{net.IPv4(127, 0, 0, 1)})
	deviceCert, deviceKey := ca.issue(t, "device", nil, "r1.example")
	rogue := &authority{dir: t.TempDir()}
	rogue.issue(t, "rogue-ca", nil)
	rogueCert, rogueKey := rogue.issue(t, "device", nil, "r1.example")
	devices, readers := filepath.Join(dir, "devices.yml"), filepath.Join(dir, "readers.yml")
	tokens(t, "new", "--file="+devices, "--certificate=r1.example", "--instance=r1")
	reader := tokens(t, "new", "--file="+readers, "--right=read")
	web := writeFile(t, dir, "web.yml", fmt.Sprintf("tls_server_config: {cert_file: %s, key_file: %s, client_ca_file: %s, client_auth_type: VerifyClientCertIfGiven}\n", serverCert, serverKey, caFile))

	adapter, err := program.Start(program.Config{Name: "adapter", Path: exe(t, "adapter"), Args: []string{"run", "--listen=127.0.0.1:0", "--data-dir=" + t.TempDir(),
		"--devices.tokens-file=" + devices, "--web.tokens-file=" + readers, "--web.config.file=" + web}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup((&app{Program: adapter}).kill)
	ctx, cancel := context.WithTimeout(t.Context(), startWithin)
	defer cancel()
	addr, err := adapter.Addr(ctx)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(ca.cert)
	client := func(certFile, keyFile string) *http.Client {
		c := &tls.Config{RootCAs: pool}
		if certFile != "" {
			pair, err := tls.LoadX509KeyPair(certFile, keyFile)
			if err != nil {
				t.Fatal(err)
			}
			// Whatever the server asks for: Go would keep back what it would not take.
			c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
		}
		return &http.Client{Transport: &http.Transport{TLSClientConfig: c, DisableKeepAlives: true}}
	}
	startExporter(t, "--rate=10", "--remote-write.url=https://"+addr+"/api/v1/write", "--remote-write.interval=500ms", "--remote-write.tls-ca-file="+caFile,
		"--remote-write.tls-cert-file="+deviceCert, "--remote-write.tls-key-file="+deviceKey, "--external-label=instance=victim")
	eventually(t, time.Minute, "the exporter is who its certificate says", func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+addr+"/api/v1/devices", nil)
		if err != nil {
			return err
		}
		req.Header.Set("Authorization", "Bearer "+reader)
		resp, err := client("", "").Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil || !strings.Contains(string(b), `"instance":"r1"`) || strings.Contains(string(b), "victim") {
			return fmt.Errorf("%s, %v: %s", resp.Status, err, b)
		}
		return nil
	})
	push := func(certFile, keyFile string) int {
		resp, err := client(certFile, keyFile).Post("https://"+addr+"/api/v1/write", "text/plain", nil)
		if err != nil {
			return 0 // no handshake
		}
		defer resp.Body.Close()
		return resp.StatusCode
	}
	if a, b, c := push(deviceCert, deviceKey), push("", ""), push(rogueCert, rogueKey); a != 415 || b != 401 || c != 0 {
		t.Errorf("the device is answered %d, nobody %d, a forged certificate %d", a, b, c)
	}
}
