package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/ticktier/ticktier/e2e/client"
	"github.com/ticktier/ticktier/e2e/program"
)

// sender is one way to send the samples.
type sender struct {
	name string
	flat bool // leaves out what does not move
	prog *program.Program
	http *client.Client // of an exporter

	// By window: bytes a sample; bytes and ns a value, that is a series in a tick; samples
	// sent a second, ms of CPU a second, and of how many samples one was sent.
	bytes, all, cpu      []float64
	samples, core, spare []float64
	wire                 string
}

func main() {
	bin := flag.String("bin", "bin", "folder that holds the exporter")
	peers := flag.String("peers", "", "folder with the peers; empty means that of `make peers`")
	windows := flag.Int("windows", 5, "windows to measure")
	window := flag.Duration("window", 30*time.Second, "length of a window, several pushes of 5 s")
	quick := flag.Bool("quick", false, "two windows of 10 s")
	flag.Parse()
	if *quick {
		*windows, *window = 2, 10*time.Second
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *bin, *peers, *windows, *window, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "wirebench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, bin, peers string, windows int, window time.Duration, out io.Writer) (err error) {
	if peers == "" {
		b, err := exec.CommandContext(ctx, "e2e/peers/build.sh").Output()
		if err != nil {
			return fmt.Errorf("find the peers: %w", err)
		}
		peers = strings.TrimSpace(string(b))
	}
	dir, err := os.MkdirTemp("", "ticktier-wirebench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b := &bench{ctx: ctx, bin: bin, peers: peers, dir: dir}
	defer func() { err = errors.Join(err, b.stop()) }()
	if err := b.start(); err != nil {
		return err
	}
	// The first requests carry more than those that follow.
	if err := sleep(ctx, 12*time.Second); err != nil {
		return err
	}
	for range windows {
		if err := b.window(window); err != nil {
			return err
		}
	}
	return b.table(out, windows, window)
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

type bench struct {
	ctx             context.Context
	bin, peers, dir string
	recv            *receiver
	extra           []*program.Program // that are not measured
	senders         []*sender
}

var promListening = regexp.MustCompile(`msg="Listening on".* address=([0-9.:]+)`)
var vmListening = regexp.MustCompile(`started server at http://([0-9.:]+)/`)

// start starts the receiver, the source and all senders.
func (b *bench) start() (err error) {
	exporters := [][]string{
		{"exporter 2.0", "--remote-write.protocol=2.0"},
		{"exporter 1.0", "--remote-write.protocol=1.0"},
		{"exporter 2.0 flat=1s", "--remote-write.protocol=2.0", "--remote-write.flat=1s"},
		{"exporter 2.0 flat=15s", "--remote-write.protocol=2.0", "--remote-write.flat=15s"},
		{"exporter 1.0 flat=1s", "--remote-write.protocol=1.0", "--remote-write.flat=1s"},
	}
	others := []string{"Prometheus agent 2.0", "Prometheus agent 1.0", "vmagent snappy", "vmagent zstd", relay}
	var names []string
	for _, e := range exporters {
		names = append(names, slug(e[0]))
	}
	for _, o := range others {
		names = append(names, slug(o))
	}
	if b.recv, err = startReceiver(names); err != nil {
		return err
	}
	addr, err := b.exporter(&sender{name: "source"})
	if err != nil {
		return err
	}
	for _, e := range exporters {
		s := &sender{name: e[0], flat: strings.Contains(e[0], "flat")}
		at, err := b.exporter(s, append(e[1:], "--remote-write.url="+b.recv.url(slug(s.name)))...)
		if err != nil {
			return err
		}
		s.http = client.New("http://" + at)
		b.senders = append(b.senders, s)
	}
	for _, o := range others {
		if err := b.peer(o, addr); err != nil {
			return err
		}
	}
	// The relay gets what an exporter of its own pushes.
	at, err := b.senders[len(b.senders)-1].prog.Addr(b.ctx)
	if err != nil {
		return err
	}
	for _, s := range []*sender{{name: "source of the relay"}, {name: idle}} {
		args := []string{"--remote-write.url=http://" + at + "/api/v1/write", "--remote-write.protocol=1.0"}
		if s.name == idle {
			args = nil
		}
		if _, err := b.exporter(s, args...); err != nil {
			return err
		}
		if s.name == idle {
			b.senders = append(b.senders, s)
		} else {
			b.extra = append(b.extra, s.prog)
		}
	}
	return nil
}

const (
	// relay is a vmagent that is pushed to and passes on: the very samples of an
	// exporter, and no scrape.
	relay = "vmagent relay"
	// idle is an exporter that only samples.
	idle = "exporter without push"
)

func slug(name string) string { return strings.NewReplacer(" ", "-", ".", "", "=", "").Replace(name) }

func (b *bench) exporter(s *sender, args ...string) (addr string, err error) {
	s.prog, err = program.Start(program.Config{Name: s.name, Path: filepath.Join(b.bin, "ticktier-exporter"),
		Args: append([]string{"run", "--listen=127.0.0.1:0", "--rate=10", "--remote-write.interval=5s", "--shutdown.timeout=1s"}, args...)})
	if err != nil {
		return "", err
	}
	if s.name == "source" {
		b.extra = append(b.extra, s.prog)
	}
	return s.prog.Addr(b.ctx)
}

// peer starts a peer that scrapes the source ten times a second and pushes every five.
func (b *bench) peer(name, source string) error {
	s := &sender{name: name}
	dir := filepath.Join(b.dir, slug(name))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	file := filepath.Join(dir, "config.yml")
	text := fmt.Sprintf("global: {scrape_interval: 100ms, scrape_timeout: 100ms}\nscrape_configs: [{job_name: node, static_configs: [{targets: ['%s']}]}]\n", source)
	c := program.Config{Name: name}
	if strings.HasPrefix(name, "Prometheus") {
		message := "prometheus.WriteRequest"
		if strings.HasSuffix(name, "2.0") {
			message = "io.prometheus.write.v2.Request"
		}
		text += fmt.Sprintf("remote_write: [{url: '%s', protobuf_message: %s, queue_config: {batch_send_deadline: 5s, max_samples_per_send: 10000, capacity: 50000, max_shards: 1}}]\n",
			b.recv.url(slug(name)), message)
		c.Path, c.Listening = filepath.Join(b.peers, "prometheus"), promListening
		c.Args = []string{"--agent", "--config.file=" + file, "--storage.agent.path=" + filepath.Join(dir, "data"), "--web.listen-address=127.0.0.1:0"}
	} else {
		c.Path, c.Listening = filepath.Join(b.peers, "vmagent"), vmListening
		c.Args = []string{"-promscrape.config=" + file, "-remoteWrite.url=" + b.recv.url(slug(name)), "-remoteWrite.flushInterval=5s",
			"-remoteWrite.tmpDataPath=" + filepath.Join(dir, "data"), "-httpListenAddr=127.0.0.1:0", "-remoteWrite.queues=1"}
		if !strings.HasSuffix(name, "zstd") {
			c.Args = append(c.Args, "-remoteWrite.forcePromProto")
		} else {
			c.Args = append(c.Args, "-remoteWrite.forceVMProto")
		}
	}
	if name == relay {
		text = "global: {}\n"
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return err
	}
	var err error
	if s.prog, err = program.Start(c); err != nil {
		return err
	}
	b.senders = append(b.senders, s)
	_, err = s.prog.Addr(b.ctx)
	return err
}

func (b *bench) stop() (err error) {
	for _, s := range b.senders {
		if s.http != nil {
			s.http.Close()
		}
		s.prog.Kill()
	}
	for _, p := range b.extra {
		p.Kill()
	}
	if b.recv != nil {
		err = b.recv.Close()
		b.recv.zstd.Close()
	}
	return err
}

// reading is what a sender has used and sent at a moment.
type reading struct{ cpu, bytes, samples, saved, series float64 }

func (b *bench) read(s *sender) (reading, error) {
	cpu, err := cpuSeconds(s.prog.PID())
	if err != nil {
		return reading{}, fmt.Errorf("%s: %w", s.name, err)
	}
	k := b.recv.sinks[slug(s.name)]
	if k == nil {
		return reading{cpu: cpu}, nil
	}
	r := reading{cpu: cpu, bytes: float64(k.bytes.Load()), samples: float64(k.samples.Load())}
	if s.http != nil {
		if r.series, err = s.http.Metric(b.ctx, "ticktier_exporter_ring_slots"); err != nil {
			return r, err
		}
	}
	if s.http != nil && s.flat {
		// The first of that name is reason="flat"; it is as old as a second.
		r.saved, err = s.http.Metric(b.ctx, "ticktier_exporter_remote_write_samples_saved_total")
	}
	return r, err
}

// cpuSeconds is what the threads of a process have run so far.
func cpuSeconds(pid int) (float64, error) {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil || len(files) == 0 {
		return 0, fmt.Errorf("no threads, %v", err)
	}
	sum := 0.0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // ended
		}
		n, err := strconv.ParseFloat(strings.Fields(string(text))[0], 64)
		if err != nil {
			return 0, err
		}
		sum += n / 1e9
	}
	return sum, nil
}

// window measures all senders at once.
func (b *bench) window(d time.Duration) error {
	before := make([]reading, len(b.senders))
	var err error
	for i, s := range b.senders {
		if before[i], err = b.read(s); err != nil {
			return err
		}
	}
	began := time.Now()
	if err := sleep(b.ctx, d); err != nil {
		return err
	}
	for i, s := range b.senders {
		now, err := b.read(s)
		if err != nil {
			return err
		}
		n := now.samples - before[i].samples
		s.core = append(s.core, (now.cpu-before[i].cpu)*1e3/time.Since(began).Seconds())
		if s.name == idle {
			continue
		}
		if n <= 0 {
			return fmt.Errorf("%s sent nothing:\n%s", s.name, s.prog.Log())
		}
		k := b.recv.sinks[slug(s.name)]
		s.wire = fmt.Sprintf("%v %v", k.version.Load(), k.encoding.Load())
		secs := time.Since(began).Seconds()
		values := n // who scrapes has a sample of every series in every tick
		if now.series > 0 {
			values = now.series * 10 * secs
		}
		s.samples = append(s.samples, n/secs)
		s.bytes = append(s.bytes, (now.bytes-before[i].bytes)/n)
		s.cpu = append(s.cpu, (now.cpu-before[i].cpu)*1e9/values)
		s.all = append(s.all, (now.bytes-before[i].bytes)/values)
		s.spare = append(s.spare, n/(n+now.saved-before[i].saved)*100)
	}
	return nil
}

func (b *bench) table(out io.Writer, windows int, window time.Duration) error {
	fmt.Fprintf(out, "10 Hz, pushes of 5 s, %d windows of %v, all senders at once; median (lowest to highest).\n"+
		"CPU is the whole process: of the exporter sampling and pushing, of the others scraping and pushing, of the relay receiving and\n"+
		"pushing. A value is a series in a tick: the exporter leaves out what was not read or, with flat, did not move.\n\n", windows, window)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "sender\twire\tsamples/s\tof those read %\tbytes/sample\tbytes/value\tCPU ns/value\tCPU ms/s")
	for _, s := range b.senders {
		if s.name == idle {
			fmt.Fprintf(w, "%s\t\t\t\t\t\t\t%s\n", s.name, spread(s.core, 1))
			continue
		}
		fmt.Fprintf(w, "%s\t%s\t%.0f\t%.0f\t%s\t%s\t%s\t%s\n", s.name, s.wire, median(s.samples), median(s.spare), spread(s.bytes, 2),
			spread(s.all, 2), spread(s.cpu, 0), spread(s.core, 1))
	}
	return w.Flush()
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return v[len(v)/2]
}

func spread(v []float64, digits int) string {
	return fmt.Sprintf("%.*f (%.*f to %.*f)", digits, median(v), digits, slices.Min(v), digits, slices.Max(v))
}
