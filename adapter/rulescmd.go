package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os/signal"
	"syscall"
	"time"

	"github.com/ticktier/ticktier/adapter/config"
	"github.com/ticktier/ticktier/adapter/rulecheck"
	"github.com/ticktier/ticktier/adapter/ruler"
)

// rulesCmd are the verbs about rule files.
type rulesCmd struct {
	Check rulesCheckCmd `cmd:"" help:"Ask a running adapter, or any Prometheus API, about rule files: which selectors match no series, and which rules can never fire. The exit code is 1 if there are any."`
}

type rulesCheckCmd struct {
	Files  []string        `arg:"" help:"Rule files, or patterns of them. Files named *_test.yml are left out." placeholder:"PATTERN"`
	HTTP   httpFlags       `embed:""`
	URL    string          `name:"url" help:"The API to ask (default ${default})." default:"http://localhost:9748" placeholder:"URL"`
	Range  config.Duration `help:"How far back series are looked for (default ${default})." default:"1h" placeholder:"TIME"`
	Format string          `help:"Form of the output: text or json (default ${default})." enum:"text,json" default:"text" placeholder:"FORM"`
}

// errFindings tells that a check found something; the findings are printed already.
var errFindings = errors.New("not every rule can fire")

func (c *rulesCheckCmd) run(ctx context.Context, out, errout io.Writer) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if u, err := url.Parse(c.URL); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return fmt.Errorf("--url: %q is no http or https address", c.URL)
	}
	if c.Range <= 0 {
		return fmt.Errorf("--range: %s is not above 0", c.Range)
	}
	files, err := ruler.Read(c.Files)
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return fmt.Errorf("no rule file matches %q", c.Files)
	}
	client, err := c.HTTP.client()
	if err != nil {
		return err
	}
	ask, err := rulecheck.NewAPI(c.URL, time.Now(), time.Duration(c.Range), client.Transport)
	if err != nil {
		return err
	}
	bar := progress(errout)
	report, err := rulecheck.Check(ctx, files, ask, func(done, of int) { bar(float64(done) / float64(of)) })
	if err != nil {
		return err
	}
	if c.Format == "json" {
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		err = e.Encode(report)
	} else {
		err = printFindings(out, report, len(files))
	}
	if err != nil {
		return err
	}
	for _, f := range report.Findings {
		if f.Kind != rulecheck.Unjudged {
			return errFindings
		}
	}
	return nil
}

func printFindings(out io.Writer, report rulecheck.Report, files int) error {
	counts := map[rulecheck.Kind]int{}
	last := ""
	for _, f := range report.Findings {
		counts[f.Kind]++
		if head := f.File + ": " + f.Group + " / " + f.Rule; head != last {
			fmt.Fprintln(out, head)
			last = head
		}
		fmt.Fprintf(out, "  %s\n", f.Why)
	}
	_, err := fmt.Fprintf(out, "%d rules in %d files: %d selectors match no series, %d rules have no way to a result, %d cannot be judged yet\n",
		report.Rules, files, counts[rulecheck.Unmatched], counts[rulecheck.NeverFires], counts[rulecheck.Unjudged])
	return err
}
