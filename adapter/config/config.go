package config

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// Config is the adapter's configuration. Kong reads it from flags and from the
// environment; a flag's name is that of its tag.
type Config struct {
	Listen  string `help:"Address to listen on (default ${default})." default:":9748" placeholder:"ADDR"`
	DataDir string `name:"data-dir" help:"Directory for everything that is kept (default ${default})." default:"./data" placeholder:"DIR"`

	RetentionRaw Duration `name:"retention.raw" help:"How long raw samples are kept; 0 for ever (default ${default})." default:"48h" placeholder:"TIME"`
	Retention5m  Duration `name:"retention.5m" env:"TICKTIER_ADAPTER_RETENTION_5M" help:"How long 5-minute buckets are kept; 0 for ever (default ${default})." default:"14d" placeholder:"TIME"`
	Retention1h  Duration `name:"retention.1h" env:"TICKTIER_ADAPTER_RETENTION_1H" help:"How long hourly buckets are kept; 0 for ever (default ${default})." default:"90d" placeholder:"TIME"`

	RetentionSize  Bytes    `name:"retention.size" help:"Most that all tiers together take on disk, such as 20GB; the oldest raw samples make room first, then 5-minute buckets, then hourly ones; 0 for as much as they need (default ${default})." default:"0" placeholder:"BYTES"`
	RetentionMatch []string `name:"retention.match" sep:"none" help:"Keep the hourly buckets of the series that a selector selects for a time of their own, which is at least --retention.5m: '{job=\"lab\"}=30d@1h'; 0 for ever. May be repeated, or name several with ; or a new line between them, as the environment needs; the first that matches a series counts." placeholder:"SELECTOR=TIME@1h"`

	OutOfOrderWindow Duration `name:"out-of-order-window" help:"How much older than the newest sample a sample may be (default ${default})." default:"24h" placeholder:"TIME"`

	FoldInterval Duration `name:"fold.interval" help:"Time between two folds of closed windows (default ${default})." default:"1m" placeholder:"TIME"`
	FoldLag      Duration `name:"fold.lag" help:"How long a window stays open after its end for samples on their way; later ones are folded too, at more cost; at most a day (default ${default})." default:"30s" placeholder:"TIME"`

	QueryLookback    Duration `name:"query.lookback-delta" help:"How old the newest sample of a series may be for it to count as there (default ${default})." default:"5m" placeholder:"TIME"`
	QueryTimeout     Duration `name:"query.timeout" help:"Longest a query may take (default ${default})." default:"2m" placeholder:"TIME"`
	QueryMaxSamples  int      `name:"query.max-samples" help:"Most samples a query may hold in memory (default ${default})." default:"50000000" placeholder:"N"`
	QueryMaxSeries   int      `name:"query.max-series" help:"Most series the selectors of a query may select (default ${default})." default:"200000" placeholder:"N"`
	QueryMaxBytes    int64    `name:"query.max-response-bytes" help:"About how many bytes the answer to a query may take (default ${default})." default:"134217728" placeholder:"N"`
	QueryLogSlower   Duration `name:"query.log-slower-than" help:"Log requests that take longer; 0 for none (default ${default})." default:"10s" placeholder:"TIME"`
	QueryConcurrency int      `name:"query.max-concurrency" help:"Most queries at a time (default ${default})." default:"20" placeholder:"N"`

	Clients `embed:""`

	DevicesDownAfter Duration `name:"devices.down-after" help:"How long a device may push nothing and be up (default ${default})." default:"1m" placeholder:"TIME"`
	DevicesClones    string   `name:"devices.clones" help:"What becomes of the second of two exporters that push as one device: refuse it with 503, or rename it (default ${default})." enum:"refuse,rename" default:"refuse" placeholder:"WHAT"`

	Access `embed:""`

	Limits `embed:""`

	Rules `embed:""`

	SelfStore bool `name:"self.store" help:"Store the adapter's own metrics, the devices' states among them, every 15 seconds." default:"true" negatable:""`

	ShutdownTimeout Duration `name:"shutdown.timeout" help:"How long requests under way may go on at a stop (default ${default})." default:"10s" placeholder:"TIME"`
	Pprof           bool     `name:"debug.pprof" help:"Serve /debug/pprof."`

	LogLevel  string `name:"log.level" help:"Least severe messages to log: debug, info, warn, error (default ${default})." enum:"debug,info,warn,error" default:"info" placeholder:"LEVEL"`
	LogFormat string `name:"log.format" help:"Form of log messages: logfmt or json (default ${default})." enum:"logfmt,json" default:"logfmt" placeholder:"FORM"`

	CheckConfig bool `name:"check-config" env:"-" help:"Check the configuration and stop."`
}

// Raw block ranges are two hours; a block goes as a whole.
const rawBlock = 2 * time.Hour

// Validate says what is wrong, by the names of the flags. It touches the data
// directory only to see whether it can be written to.
func (c *Config) Validate() error {
	var errs []error
	bad := func(format string, a ...any) { errs = append(errs, fmt.Errorf(format, a...)) }
	for _, d := range []struct {
		flag string
		d    Duration
		min  time.Duration
	}{
		{"--fold.interval", c.FoldInterval, 100 * time.Millisecond},
		{"--fold.lag", c.FoldLag, 0},
		{"--query.lookback-delta", c.QueryLookback, time.Millisecond},
		{"--query.timeout", c.QueryTimeout, time.Millisecond},
		{"--query.log-slower-than", c.QueryLogSlower, 0},
		{"--devices.down-after", c.DevicesDownAfter, time.Second},
		{"--shutdown.timeout", c.ShutdownTimeout, 0},
		{"--out-of-order-window", c.OutOfOrderWindow, 0},
		{"--retention.raw", c.RetentionRaw, 0},
		{"--retention.5m", c.Retention5m, 0},
		{"--retention.1h", c.Retention1h, 0},
	} {
		if time.Duration(d.d) < d.min {
			bad("%s: %s is less than %s", d.flag, d.d, d.min)
		}
	}
	if most := 24 * time.Hour; time.Duration(c.FoldLag) > most {
		bad("--fold.lag: %s is more than %s: buckets would be that far behind", c.FoldLag, Duration(most))
	}
	if err := listenable(c.Listen); err != nil {
		bad("--listen: %w", err)
	}
	if c.QueryMaxSamples < 1 {
		bad("--query.max-samples: %d is less than 1", c.QueryMaxSamples)
	}
	if c.QueryMaxSeries < 1 {
		bad("--query.max-series: %d is less than 1", c.QueryMaxSeries)
	}
	if c.QueryMaxBytes < 1 {
		bad("--query.max-response-bytes: %d is less than 1", c.QueryMaxBytes)
	}
	if c.QueryConcurrency < 1 {
		bad("--query.max-concurrency: %d is less than 1", c.QueryConcurrency)
	}
	c.checkRetention(bad)
	if _, err := c.Overrides(); err != nil {
		bad("--retention.match: %w", err)
	}
	if c.RetentionSize != 0 && c.RetentionSize < leastSize {
		bad("--retention.size: %s is less than %s", c.RetentionSize, Bytes(leastSize))
	}
	c.Clients.validate(bad)
	c.Access.validate(bad)
	c.Limits.validate(bad)
	c.Rules.validate(bad)
	if err := writable(c.DataDir); err != nil {
		bad("--data-dir: %w", err)
	}
	return errors.Join(errs...)
}

// RawNeeds is how long raw samples have to be kept: late samples are folded together
// with the others of their windows, and a block goes as a whole.
func (c *Config) RawNeeds() time.Duration { return time.Duration(c.OutOfOrderWindow) + 2*rawBlock }

// checkRetention refuses what would lose samples that are in no bucket, or leave
// a hole between two tiers.
func (c *Config) checkRetention(bad func(string, ...any)) {
	raw, fine, coarse := time.Duration(c.RetentionRaw), time.Duration(c.Retention5m), time.Duration(c.Retention1h)
	if least := c.RawNeeds(); raw != 0 && raw < least {
		bad("--retention.raw: %s is less than --out-of-order-window and two blocks together (%s): late samples would reach windows whose raw samples are gone", c.RetentionRaw, Duration(least))
	}
	// The hours of a day that is not over are merged again from five-minute buckets
	// after a restart.
	if least := 48 * time.Hour; fine != 0 && fine < least {
		bad("--retention.5m: %s is less than %s: hours are merged from these buckets", c.Retention5m, Duration(least))
	}
	if fine != 0 && (raw == 0 || raw > fine) {
		bad("--retention.5m: %s is less than --retention.raw (%s)", c.Retention5m, c.RetentionRaw)
	}
	if coarse != 0 && (fine == 0 || fine > coarse) {
		bad("--retention.1h: %s is less than --retention.5m (%s)", c.Retention1h, c.Retention5m)
	}
}

// listenable tells whether one could listen on an address, whoever has it now.
func listenable(addr string) error {
	_, port, err := net.SplitHostPort(addr)
	if err != nil || port == "" {
		return fmt.Errorf("%q is not an address with a port such as :9748 or 127.0.0.1:9748", addr)
	}
	if _, err := net.LookupPort("tcp", port); err != nil {
		return fmt.Errorf("%q has no port from 0 to 65535", addr)
	}
	return nil
}

// writable makes the directory and a file in it.
func writable(dir string) error {
	if dir == "" {
		return errors.New("is empty")
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	probe := filepath.Join(dir, ".writable")
	if err := os.WriteFile(probe, nil, 0o666); err != nil {
		if errors.Is(err, syscall.ENOSPC) {
			return nil // a full disk is waited for
		}
		return err
	}
	return os.Remove(probe)
}
