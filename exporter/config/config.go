package config

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Config is the exporter's configuration. Kong reads it from flags and from the
// environment; a flag's name is that of its tag. Lists are given by repeating the
// flag or, as the environment has to, in one value with spaces or commas between.
type Config struct {
	Listen string `help:"Address to serve /metrics on; empty for none." default:":9747" placeholder:"ADDR"`
	Rate   int    `help:"Ticks a second, 1 to 1000." default:"10" placeholder:"HZ"`

	FloorHz int `name:"floor-hz" help:"Read every source at least so often a second, whatever its own cadence; 0 for its cadence." default:"0" placeholder:"HZ"`

	RateProtect float64 `name:"rate.protect" help:"Read a source less often when its reads take more than this share of the tick thread's time, 0 to 1; 0 slows none." default:"0" placeholder:"SHARE"`

	PathProcfs string `name:"path.procfs" filled:"" help:"Where procfs is mounted." default:"/proc" placeholder:"DIR" group:"path"`
	PathSysfs  string `name:"path.sysfs" filled:"" help:"Where sysfs is mounted." default:"/sys" placeholder:"DIR" group:"path"`
	PathRootfs string `name:"path.rootfs" filled:"" help:"Where the root file system is mounted." default:"/" placeholder:"DIR" group:"path"`

	TextfileDirectory []string `name:"collector.textfile.directory" filled:"" sep:"none" help:"Directory, or pattern of directories, whose *.prom files are served; may be repeated." placeholder:"DIR" group:"read"`
	PingTarget        []string `name:"ping.target" filled:"" sep:"none" help:"Host to ping ten times a second, HOST by ICMP or HOST:PORT by TCP; may be repeated." placeholder:"TARGET" group:"read"`
	ContainerNetwork  bool     `name:"container-network" help:"Report the network of a container that does not share the host's, as if it were the device's." group:"read"`

	RemoteWriteURL      []string      `name:"remote-write.url" filled:"" sep:"none" help:"Receiver to push to, http or https; may be repeated. User and password in it are used for basic authentication. Behind a # may stand what holds for it alone, as in #rate=1&flat=15s." placeholder:"URL" group:"push"`
	RemoteWriteInterval time.Duration `name:"remote-write.interval" help:"Time between two pushes." default:"5s" placeholder:"TIME" group:"push"`
	RemoteWriteTimeout  time.Duration `name:"remote-write.timeout" help:"Longest a push may take." default:"30s" placeholder:"TIME" group:"push"`
	RemoteWriteProtocol string        `name:"remote-write.protocol" help:"Remote-write version: 2.0, 1.0, or auto for 2.0 where the receiver knows it." enum:"auto,2.0,1.0" default:"auto" placeholder:"VERSION" group:"push"`

	RemoteWriteHeader       []string `name:"remote-write.header" filled:"" sep:"none" help:"Header to send with pushes; may be repeated." placeholder:"NAME=VALUE" group:"push"`
	RemoteWriteTokenFile    string   `name:"remote-write.bearer-token-file" filled:"" help:"File with a bearer token for all receivers; it is read again when it changes." placeholder:"FILE" group:"push"`
	RemoteWriteUsername     string   `name:"remote-write.username" filled:"" help:"User for basic authentication at all receivers." placeholder:"NAME" group:"push"`
	RemoteWritePasswordFile string   `name:"remote-write.password-file" filled:"" help:"File with the password of --remote-write.username; it is read again when it changes." placeholder:"FILE" group:"push"`

	RemoteWriteTLSCAFile     string `name:"remote-write.tls-ca-file" filled:"" help:"File with the certificates, in PEM, that receivers' are to be signed by, in place of the system's; it is read again when it changes." placeholder:"FILE" group:"push"`
	RemoteWriteTLSCertFile   string `name:"remote-write.tls-cert-file" filled:"" help:"File with the certificate, in PEM, to show to receivers; it is read again when it changes." placeholder:"FILE" group:"push"`
	RemoteWriteTLSKeyFile    string `name:"remote-write.tls-key-file" filled:"" help:"File with the key of --remote-write.tls-cert-file." placeholder:"FILE" group:"push"`
	RemoteWriteTLSServerName string `name:"remote-write.tls-server-name" help:"Name that receivers' certificates are to have; empty for that in the URL." placeholder:"NAME" group:"push"`
	RemoteWriteTLSInsecure   bool   `name:"remote-write.tls-insecure-skip-verify" help:"Take any certificate: whoever is on the way can read and change what is pushed." group:"push"`
	RemoteWriteProxyURL      string `name:"remote-write.proxy-url" filled:"" help:"Proxy to push through, http, https or socks5; direct for none. Without it HTTP_PROXY, HTTPS_PROXY and NO_PROXY hold." placeholder:"URL" group:"push"`

	RemoteWriteOrder        string        `name:"remote-write.order" help:"What goes first when there is a backlog: live, the newest, where the receiver takes samples out of order; or strict, the oldest." enum:"live,strict" default:"live" placeholder:"ORDER" group:"push"`
	RemoteWriteBacklogShare float64       `name:"remote-write.backlog-share" help:"Share of the line's time that a backlog behind the live edge may take." default:"0.5" placeholder:"SHARE" group:"push"`
	RemoteWriteFlat         time.Duration `name:"remote-write.flat" help:"Send a counter that does not move only so often, and at the ticks before and when it moves; 0 sends every sample." default:"0s" placeholder:"TIME" group:"push"`
	RemoteWriteRate         int           `name:"remote-write.rate" help:"Ticks a second to send, at most; 0 for all." default:"0" placeholder:"HZ" group:"push"`
	RemoteWriteMatch        []string      `name:"remote-write.match[]" filled:"" sep:"none" help:"Send only series that this selector selects; may be repeated." placeholder:"SELECTOR" group:"push"`
	RemoteWriteDrop         []string      `name:"remote-write.drop[]" filled:"" sep:"none" help:"Do not send series that this selector selects; may be repeated." placeholder:"SELECTOR" group:"push"`

	RemoteWriteStaleOnStop bool `name:"remote-write.stale-on-stop" help:"End every series with a staleness marker at a clean stop." default:"true" negatable:"" group:"push"`

	RemoteWriteBursts bool `name:"remote-write.bursts" help:"Push what /metrics tells of ticks between scrapes, too: histograms, and the lowest and highest since the last push." group:"push"`

	ExternalLabel []string `name:"external-label" filled:"" sep:"none" help:"Label for everything that is pushed; may be repeated. instance defaults to the host name and job to node; an empty value leaves a label out." placeholder:"NAME=VALUE" group:"push"`

	ScrapeURL          []string `name:"scrape.url" filled:"" sep:"none" help:"Other exporter to scrape and to push with the ticks, http or https; may be repeated. Behind a # stands what holds for it, as in #interval=15s&label=job=node; see the README." placeholder:"URL" group:"scrape"`
	ScrapeMaxSeries    int      `name:"scrape.max-series" help:"Most series that all targets may have; a scrape that has more counts as down." default:"5000" placeholder:"N" group:"scrape"`
	ScrapeMaxBytes     Bytes    `name:"scrape.max-bytes" help:"Largest answer of a target, once it is expanded." default:"4MiB" placeholder:"SIZE" group:"scrape"`
	ScrapeRingMaxBytes Bytes    `name:"scrape.ring-max-bytes" help:"Memory for what was scraped." default:"1MiB" placeholder:"SIZE" group:"scrape"`

	RingMaxBytes Bytes         `name:"ring.max-bytes" help:"Memory for ticks, in bytes or with KiB, MiB or GiB behind." default:"4MiB" placeholder:"SIZE"`
	RingDuration time.Duration `name:"ring.duration" help:"How long to hold ticks for, while there is room for them; 0 for as long as there is room." default:"0s" placeholder:"TIME"`

	SpoolDir      string        `name:"spool.dir" filled:"" help:"Directory for ticks that the ring has to give up before every receiver has them; without it there is none." placeholder:"DIR" group:"spool"`
	SpoolMaxBytes Bytes         `name:"spool.max-bytes" help:"Most that the spool may take; the oldest ticks make room." default:"64MiB" placeholder:"SIZE" group:"spool"`
	SpoolMaxAge   time.Duration `name:"spool.max-age" help:"Oldest that ticks in the spool may become; 0 for any age." default:"0s" placeholder:"TIME" group:"spool"`

	ClockSource string `name:"clock.source" help:"Whose clock holds: system, this machine's, or receiver, that of the first --remote-write.url." enum:"system,receiver" default:"system" placeholder:"SOURCE"`

	ShutdownTimeout time.Duration `name:"shutdown.timeout" help:"How long to go on pushing what is left at a stop." default:"5s" placeholder:"TIME"`
	Pprof           bool          `name:"debug.pprof" help:"Serve /debug/pprof, in a build that has it."`

	LogLevel  string `name:"log.level" help:"Least severe messages to log: debug, info, warn, error." enum:"debug,info,warn,error" default:"info" placeholder:"LEVEL"`
	LogFormat string `name:"log.format" help:"Form of log messages: logfmt or json." enum:"logfmt,json" default:"logfmt" placeholder:"FORM"`

	CheckConfig bool `name:"check-config" help:"Check the configuration and stop."`
}

const (
	// MaxRate is the highest rate: a tick carries milliseconds.
	MaxRate = 1000
	// MinRingBytes is the smallest ring, sixteen frames of 4 KiB.
	MinRingBytes = 64 << 10
	// MinSpoolBytes is the smallest spool, sixteen segments.
	MinSpoolBytes = 256 << 10
	// MaxRingBytes keeps a mistyped size from being asked of the machine.
	MaxRingBytes = 64 << 30
)

// Validate puts lists apart and says everything that is wrong, by the names of the
// flags; what it returns is Faults.
func (c *Config) Validate() error {
	var errs Faults
	bad := func(format string, a ...any) { errs = append(errs, fmt.Errorf(format, a...)) }
	if c.Listen != "" {
		if err := checkListen(c.Listen); err != nil {
			bad("--listen: %q is no address: %w", c.Listen, err)
		}
	}
	if c.Listen == "" && len(split(c.RemoteWriteURL, isURL)) == 0 {
		bad("--listen: is empty, and there is no --remote-write.url: nobody would get the samples")
	}
	if c.Rate < 1 || c.Rate > MaxRate {
		bad("--rate: %d is not between 1 and %d", c.Rate, MaxRate)
	}
	if c.FloorHz < 0 || c.FloorHz > max(c.Rate, 0) {
		bad("--floor-hz: %d is not between 0 and the rate, %d", c.FloorHz, c.Rate)
	}
	if !(c.RateProtect >= 0 && c.RateProtect <= 1) {
		bad("--rate.protect: %v is not between 0 and 1", c.RateProtect)
	}
	if c.RingMaxBytes < MinRingBytes || c.RingMaxBytes > MaxRingBytes {
		bad("--ring.max-bytes: %s is not between %s and %s", c.RingMaxBytes, Bytes(MinRingBytes), Bytes(MaxRingBytes))
	}
	if c.RingDuration < 0 {
		bad("--ring.duration: %s is negative", c.RingDuration)
	}
	if c.ShutdownTimeout < 0 {
		bad("--shutdown.timeout: %s is negative", c.ShutdownTimeout)
	}
	c.checkPaths(bad)
	c.PingTarget = splitWords(c.PingTarget)
	c.TextfileDirectory = split(c.TextfileDirectory, isPath)
	for _, dir := range c.TextfileDirectory {
		if _, err := filepath.Match(dir, ""); err != nil {
			bad("--collector.textfile.directory: %q: %w", dir, err)
		}
	}
	c.checkPush(bad)
	c.checkSpool(bad)
	c.checkScrape(bad)
	if _, err := c.Labels(); err != nil {
		errs = append(errs, err)
	}
	if len(errs) == 0 {
		return nil
	}
	return errs
}

// checkListen checks an address to listen on, but for whether the machine has it.
func checkListen(addr string) error {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return err
	}
	if n, err := strconv.Atoi(port); err == nil && (n < 0 || n > 65535) {
		return fmt.Errorf("a port is a number up to 65535, not %s", port)
	}
	return nil
}

// Faults is everything that is wrong with a configuration.
type Faults []error

// Error has a line for each fault.
func (f Faults) Error() string { return errors.Join(f...).Error() }

// Unwrap lets errors.Is and errors.As look at each.
func (f Faults) Unwrap() []error { return f }

// checkPaths checks procfs, and what else was chosen: a container may well lack
// /sys.
func (c *Config) checkPaths(bad func(string, ...any)) {
	for _, p := range []struct {
		flag, path string
		optional   bool
	}{
		{"--path.procfs", c.PathProcfs, false},
		{"--path.sysfs", c.PathSysfs, c.PathSysfs == "/sys"},
		{"--path.rootfs", c.PathRootfs, c.PathRootfs == "/"},
	} {
		if p.optional {
			continue
		}
		if err := readableDir(p.path); err != nil {
			bad("%s: %w", p.flag, err)
		}
	}
}

func readableDir(path string) error {
	if path == "" {
		return errors.New("is empty")
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is no directory", path)
	}
	return nil
}

// checkPush checks what pushing needs, for each receiver.
func (c *Config) checkPush(bad func(string, ...any)) {
	c.RemoteWriteURL = split(c.RemoteWriteURL, isURL)
	if c.ClockSource == "receiver" && len(c.RemoteWriteURL) == 0 {
		bad("--clock.source: receiver needs a --remote-write.url")
	}
	receivers, err := c.Receivers()
	if err != nil {
		bad("%w", err)
		return
	}
	if len(receivers) == 0 {
		receivers = []*Config{c}
	}
	seen := map[string]bool{} // what is wrong with all is said once
	once := func(format string, a ...any) {
		if err := fmt.Errorf(format, a...); !seen[err.Error()] {
			seen[err.Error()] = true
			bad("%w", err)
		}
	}
	given := map[string]bool{}
	for i, s := range c.RemoteWriteURL {
		if err := checkURL(receivers[i].RemoteWriteURL[0]); err != nil {
			once("--remote-write.url: %w", err)
		} else if given[s] {
			once("--remote-write.url: %s is given twice", redact(s))
		}
		given[s] = true
	}
	for _, r := range receivers {
		r.checkReceiver(once)
		r.checkDelivery(once)
	}
}

// checkReceiver checks what pushing to one receiver needs.
func (c *Config) checkReceiver(bad func(string, ...any)) {
	if c.RemoteWriteInterval < 10*time.Millisecond {
		bad("--remote-write.interval: %s is less than 10ms", c.RemoteWriteInterval)
	}
	if c.RemoteWriteTimeout < 10*time.Millisecond {
		bad("--remote-write.timeout: %s is less than 10ms", c.RemoteWriteTimeout)
	}
	if !oneOf(c.RemoteWriteProtocol, "", "auto", "2.0", "1.0") {
		bad("--remote-write.protocol: %q is none of auto, 2.0, 1.0", c.RemoteWriteProtocol)
	}
	if !oneOf(c.RemoteWriteOrder, "", "live", "strict") {
		bad("--remote-write.order: %q is neither live nor strict", c.RemoteWriteOrder)
	}
	if _, err := c.Headers(); err != nil {
		bad("%w", err)
	}
	if _, err := c.Proxy(); err != nil {
		bad("--remote-write.proxy-url: %w", err)
	}
	if (c.RemoteWriteTLSCertFile == "") != (c.RemoteWriteTLSKeyFile == "") {
		bad("--remote-write.tls-cert-file and --remote-write.tls-key-file: one needs the other")
	}
	if c.RemoteWriteTLSInsecure && c.RemoteWriteTLSCAFile != "" {
		bad("--remote-write.tls-insecure-skip-verify: makes nothing of --remote-write.tls-ca-file")
	}
	c.checkCredentials(bad)
}

func oneOf(s string, all ...string) bool { return slices.Contains(all, s) }

// Proxy is the proxy to push through, nil for that of the environment. A URL
// without a host is none at all.
func (c *Config) Proxy() (*url.URL, error) {
	switch c.RemoteWriteProxyURL {
	case "":
		return nil, nil
	case "direct":
		return &url.URL{}, nil
	}
	u, err := url.Parse(c.RemoteWriteProxyURL)
	switch {
	case err != nil:
		return nil, errors.New("is not a URL") // the text may hold a password
	case !oneOf(u.Scheme, "http", "https", "socks5", "socks5h"):
		return nil, fmt.Errorf("%s does not begin with http://, https:// or socks5://", redact(c.RemoteWriteProxyURL))
	case u.Hostname() == "":
		return nil, fmt.Errorf("%s names no host", redact(c.RemoteWriteProxyURL))
	}
	return u, nil
}

func (c *Config) checkCredentials(bad func(string, ...any)) {
	switch {
	case c.RemoteWriteTokenFile != "" && c.RemoteWriteUsername != "":
		bad("--remote-write.bearer-token-file: not together with --remote-write.username")
	case c.RemoteWritePasswordFile != "" && c.RemoteWriteUsername == "":
		bad("--remote-write.password-file: needs --remote-write.username")
	case c.RemoteWriteUsername != "" && c.RemoteWritePasswordFile == "":
		bad("--remote-write.username: needs --remote-write.password-file")
	}
	for _, f := range []struct{ flag, path string }{
		{"--remote-write.bearer-token-file", c.RemoteWriteTokenFile},
		{"--remote-write.password-file", c.RemoteWritePasswordFile},
		{"--remote-write.tls-ca-file", c.RemoteWriteTLSCAFile},
		{"--remote-write.tls-cert-file", c.RemoteWriteTLSCertFile},
		{"--remote-write.tls-key-file", c.RemoteWriteTLSKeyFile},
	} {
		if f.path == "" {
			continue
		}
		if _, err := os.ReadFile(f.path); err != nil {
			bad("%s: %w", f.flag, err)
			return
		}
	}
	c.checkCertificates(bad)
}

// checkCertificates checks that the files of TLS hold what they should.
func (c *Config) checkCertificates(bad func(string, ...any)) {
	if c.RemoteWriteTLSCAFile != "" {
		b, err := os.ReadFile(c.RemoteWriteTLSCAFile)
		if err == nil && !x509.NewCertPool().AppendCertsFromPEM(b) {
			bad("--remote-write.tls-ca-file: %s has no certificate in PEM", c.RemoteWriteTLSCAFile)
		}
	}
	if c.RemoteWriteTLSCertFile != "" && c.RemoteWriteTLSKeyFile != "" {
		if _, err := tls.LoadX509KeyPair(c.RemoteWriteTLSCertFile, c.RemoteWriteTLSKeyFile); err != nil {
			bad("--remote-write.tls-cert-file, --remote-write.tls-key-file: %w", err)
		}
	}
}

// checkURL says what is wrong with a receiver's URL, without what may be secret in
// it.
func checkURL(s string) error {
	u, err := url.Parse(s)
	if err != nil {
		var e *url.Error
		if errors.As(err, &e) {
			err = e.Err // the rest is the URL itself
		}
		if !strings.Contains(s, "://") { // 192.0.2.1:9748 has a "first path segment" for a parser
			return noScheme(s)
		}
		return fmt.Errorf("not a URL: %w", err)
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https" && !strings.Contains(s, "://"):
		return noScheme(s)
	case u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("%s does not begin with http:// or https://", redact(s))
	case u.Hostname() == "":
		return fmt.Errorf("%s names no host", redact(s))
	}
	return nil
}

// noScheme is the error for what is a URL but for its beginning. A password may be in
// it where there is an @.
func noScheme(s string) error {
	s, _, _ = strings.Cut(s, "?")
	if strings.Contains(s, "@") {
		s = "the URL"
	}
	return fmt.Errorf("%s does not begin with http:// or https://: write http:// before it", s)
}

// redact is a URL without user, password, query and fragment. It is fit for what
// is no proper URL, too.
func redact(s string) string {
	u, err := url.Parse(s)
	if err != nil {
		return "the URL"
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}
