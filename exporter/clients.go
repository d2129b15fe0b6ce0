package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ticktier/ticktier/exporter/flags"
	"github.com/ticktier/ticktier/exporter/follow"
	"github.com/ticktier/ticktier/exporter/plot"
	"github.com/ticktier/ticktier/exporter/top"
)

// client is a verb that asks a running exporter, or works on what was recorded of
// one.
type client struct {
	usage, about string
	run          func(ctx context.Context, a *clientArgs, out, errout io.Writer) error
	args         any // pointer to what its flags fill in
	takesFile    bool
}

// clientArgs is what was said on the command line of a client.
type clientArgs struct {
	flags any
	file  string
}

type topFlags struct {
	URL string `name:"url" help:"Where the exporter listens." default:"http://localhost:9747" placeholder:"URL"`
}

type recordFlags struct {
	URL   string        `name:"url" help:"Where the exporter listens." default:"http://localhost:9747" placeholder:"URL"`
	For   time.Duration `help:"How long to record." default:"5m" placeholder:"TIME"`
	Out   string        `help:"File to write; - is standard output." default:"ticktier.record" placeholder:"FILE"`
	Match []string      `help:"Selector of series to record, as in PromQL; may be repeated. Without it: every series." placeholder:"SELECTOR"`
}

type plotFlags struct {
	Out    string `help:"File to write, an SVG picture or, where its name ends in .png, a PNG one; - is standard output. Without it: the record's name and .svg." placeholder:"FILE"`
	Format string `help:"Form of the picture: svg, png, or auto, by the name of the file." enum:"auto,svg,png" default:"auto" placeholder:"FORM"`
}

// clients are the verbs, by name.
func clients() map[string]client {
	return map[string]client{
		"top": {usage: "top [flags]", run: runTop, args: &topFlags{},
			about: "Shows each second of a running exporter: the lowest, mean and highest tick of CPUs and interfaces.\nShares of CPU are as coarse as the kernel counts: by its own ticks, so shorter bursts are undercounted.\nOn a terminal it fills the screen until Ctrl-C; elsewhere one screen follows the other. NO_COLOR is heeded."},
		"record": {usage: "record [flags]", run: runRecord, args: &recordFlags{},
			about: "Writes the ticks of a running exporter to a file, as JSON lines."},
		"plot": {usage: "plot [flags] FILE", run: runPlot, args: &plotFlags{}, takesFile: true,
			about: "Draws a record as an SVG or PNG picture: CPU by mode, packets, drops, how late ticks were."},
	}
}

// runClient runs a client and returns the exit code. A signal ends it well.
func runClient(ctx context.Context, c client, args []string, out, errout io.Writer) int {
	set := clientSet(&c)
	rest, err := set.Parse(args, os.Environ())
	a := &clientArgs{flags: c.args}
	switch {
	case errors.Is(err, flags.ErrHelp):
		fmt.Fprintf(out, "Usage: ticktier-exporter %s\n\n%s\n", c.usage, c.about)
		set.Help(out)
		return 0
	case err == nil && c.takesFile && len(rest) != 1:
		err = errors.New("one file is needed")
	case err == nil && c.takesFile:
		a.file = rest[0]
	case err == nil && len(rest) > 0:
		err = fmt.Errorf("unexpected argument %s", rest[0])
	}
	if err != nil {
		fmt.Fprintf(errout, "ticktier-exporter: %v (see ticktier-exporter %s --help)\n", err, strings.Fields(c.usage)[0])
		return exitUsage
	}
	for _, name := range unknownVariables(os.Environ()) {
		fmt.Fprintf(errout, "ticktier-exporter: the environment variable %s is no flag's and changes nothing\n", name)
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := c.run(ctx, a, out, errout); err != nil && ctx.Err() == nil {
		fmt.Fprintln(errout, "ticktier-exporter:", err)
		return exitFailed
	}
	return 0
}

func runTop(ctx context.Context, a *clientArgs, out, _ io.Writer) error {
	body, err := follow.Open(ctx, a.flags.(*topFlags).URL, top.Match()...)
	if err != nil {
		return err
	}
	defer body.Close()
	return top.Run(out, body, screenOf(out))
}

// screenOf is what is known of the screen behind out.
func screenOf(out io.Writer) top.Screen {
	if !isTerminal(out) || os.Getenv("TERM") == "dumb" {
		return top.Screen{}
	}
	return top.Screen{Terminal: true, Colour: os.Getenv("NO_COLOR") == "", Size: func() (columns, lines int) {
		size, err := unix.IoctlGetWinsize(int(out.(*os.File).Fd()), unix.TIOCGWINSZ)
		if err != nil {
			return 0, 0
		}
		return int(size.Col), int(size.Row)
	}}
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

func runRecord(ctx context.Context, a *clientArgs, out, errout io.Writer) error {
	f := a.flags.(*recordFlags)
	if f.For <= 0 {
		return fmt.Errorf("--for: %s is no time to record for", f.For)
	}
	ctx, cancel := context.WithTimeout(ctx, f.For)
	defer cancel()
	body, err := follow.Open(ctx, f.URL, f.Match...)
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("record: %s did not answer within %s", f.URL, f.For)
	}
	if err != nil {
		return err
	}
	defer body.Close()
	n := 0
	err = create(f.Out, out, func(w io.Writer) (err error) {
		n, err = follow.Record(w, body)
		return err
	})
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("record: no tick came within %s", f.For)
	}
	if err != nil {
		return fmt.Errorf("record: %w", err)
	}
	fmt.Fprintf(errout, "%d ticks are in %s\n", n, f.Out)
	return nil
}

func runPlot(_ context.Context, a *clientArgs, out, _ io.Writer) error {
	src, err := os.Open(a.file)
	if err != nil {
		return err
	}
	defer src.Close()
	f := a.flags.(*plotFlags)
	if ending := strings.ToLower(filepath.Ext(f.Out)); f.Format == "auto" && f.Out != "-" && f.Out != "" && ending != ".svg" && ending != ".png" {
		return fmt.Errorf("--out: %s ends neither in .svg nor in .png: --format says which it is to be", f.Out)
	}
	format := plot.FormatOf(f.Out)
	switch f.Format {
	case "svg":
		format = plot.SVG
	case "png":
		format = plot.PNG
	}
	name := f.Out
	if name == "" {
		name = a.file + map[plot.Format]string{plot.SVG: ".svg", plot.PNG: ".png"}[format]
	}
	err = create(name, out, func(w io.Writer) error { return plot.Draw(w, src, format) })
	if err != nil {
		return fmt.Errorf("plot %s: %w", a.file, err)
	}
	return nil
}

// create lets write fill a file, or standard output where its name is -. A file that
// could not be made whole is kept: half of a record is worth something.
func create(name string, out io.Writer, write func(io.Writer) error) error {
	if name == "-" {
		return write(out)
	}
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	return errors.Join(write(w), w.Flush(), f.Close())
}
