package send

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"
)

// TLS is how a receiver's certificate is checked and which one it is shown. The
// files are PEM, and are read again when they change.
type TLS struct {
	CAFile            string // empty is the system's certificates
	CertFile, KeyFile string // of the certificate to show; empty is none
	ServerName        string // that the receiver's has; empty is that in the URL
	Insecure          bool   // any certificate is taken
}

// tlsFiles makes a TLS configuration of the files, and another when they change.
type tlsFiles struct {
	cfg    TLS
	host   string
	trust  *trust
	log    *slog.Logger
	seen   [3]fileStamp
	lapsed atomic.Bool // said that a certificate was checked against another time
}

// fileStamp tells one content of a file from another.
type fileStamp struct {
	size int64
	time time.Time
}

func (f *tlsFiles) stamps() (out [3]fileStamp) {
	for i, name := range []string{f.cfg.CAFile, f.cfg.CertFile, f.cfg.KeyFile} {
		if name == "" {
			continue
		}
		if info, err := os.Stat(name); err == nil {
			out[i] = fileStamp{info.Size(), info.ModTime()}
		}
	}
	return out
}

// changed reports whether a file is another than when load read it.
func (f *tlsFiles) changed() bool { return f.stamps() != f.seen }

// load reads the files.
func (f *tlsFiles) load() (*tls.Config, error) {
	f.seen = f.stamps() // before they are read: a change meanwhile is seen next time
	conf := &tls.Config{ServerName: f.cfg.ServerName, MinVersion: tls.VersionTLS12,
		// The check below is in place of the one that this leaves out, which knows no
		// other time than now.
		InsecureSkipVerify: true}
	var roots *x509.CertPool
	if f.cfg.CAFile != "" {
		b, err := os.ReadFile(f.cfg.CAFile)
		if err != nil {
			return nil, fmt.Errorf("read certificates to trust: %w", err)
		}
		roots = x509.NewCertPool()
		if !roots.AppendCertsFromPEM(b) {
			return nil, fmt.Errorf("read certificates to trust: %s has none in PEM", f.cfg.CAFile)
		}
	}
	if f.cfg.CertFile != "" {
		cert, err := tls.LoadX509KeyPair(f.cfg.CertFile, f.cfg.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("read the certificate to show: %w", err)
		}
		conf.Certificates = []tls.Certificate{cert}
	}
	if !f.cfg.Insecure {
		conf.VerifyConnection = func(cs tls.ConnectionState) error { return f.verify(&cs, roots) }
	}
	return conf, nil
}

// verify checks a receiver's certificate. While the clock is not known to be right,
// the only thing that can be said of its validity is whether it ended before a time
// that is past for sure.
func (f *tlsFiles) verify(cs *tls.ConnectionState, roots *x509.CertPool) error {
	if len(cs.PeerCertificates) == 0 {
		return errors.New("the receiver shows no certificate")
	}
	o := x509.VerifyOptions{Roots: roots, DNSName: cs.ServerName, Intermediates: x509.NewCertPool()}
	if o.DNSName == "" { // which it is for an address
		o.DNSName = f.host
	}
	for _, cert := range cs.PeerCertificates[1:] {
		o.Intermediates.AddCert(cert)
	}
	now, past, sure := f.trust.times()
	o.CurrentTime = now
	_, err := cs.PeerCertificates[0].Verify(o)
	var invalid x509.CertificateInvalidError
	if err == nil || sure || !errors.As(err, &invalid) || invalid.Reason != x509.Expired {
		return err
	}
	o.CurrentTime = past
	for _, cert := range cs.PeerCertificates {
		if cert.NotBefore.After(o.CurrentTime) {
			o.CurrentTime = cert.NotBefore // which is past, then
		}
	}
	if _, err := cs.PeerCertificates[0].Verify(o); err != nil {
		return err
	}
	if !f.lapsed.Swap(true) {
		f.log.Warn("this machine's clock is not known to be right: the receiver's certificate is checked against a time that is past for sure",
			"clock", now.UTC(), "checked_against", o.CurrentTime.UTC())
	}
	return nil
}
