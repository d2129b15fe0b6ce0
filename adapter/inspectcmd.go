package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/ticktier/ticktier/adapter/fold"
	"github.com/ticktier/ticktier/adapter/store"
)

// inspectCmd shows what a data directory holds.
type inspectCmd struct {
	DataDir string `name:"data-dir" help:"Data directory; an adapter may be running on it (default ${default})." default:"./data" placeholder:"DIR"`
	By      string `help:"Add up sizes by this label, such as __name__ or instance." placeholder:"LABEL"`
	Series  string `help:"Show the buckets of the series that this selector selects, oldest first." placeholder:"SELECTOR"`
	Top     int    `help:"With --by: how many of the largest to show (default ${default})." default:"20" placeholder:"N"`
	Format  string `help:"Form of the output: table or json (default ${default})." enum:"table,json" default:"table" placeholder:"FORM"`
}

// verifyCmd reads everything.
type verifyCmd struct {
	DataDir string `name:"data-dir" help:"Data directory; an adapter may be running on it (default ${default})." default:"./data" placeholder:"DIR"`
}

// tierReport is what inspect says of one tier.
type tierReport struct {
	Tier   string            `json:"tier"`
	Blocks []store.BlockInfo `json:"blocks,omitempty"`
	// HeadBytes is what raw samples that are in no block yet take.
	HeadBytes int64        `json:"headBytes,omitempty"`
	By        []sizeReport `json:"by,omitempty"`
}

type sizeReport struct {
	Value string `json:"value"`
	store.Size
}

// openTiers opens both tiers to be read only.
func openTiers(dir string) (tiers []*store.Buckets, closeAll func() error, err error) {
	// What could not be opened is said after all that could be.
	closeAll = func() error {
		var errs []error
		for _, t := range tiers {
			errs = append(errs, t.Close())
		}
		return errors.Join(errs...)
	}
	if err := isDataDir(dir); err != nil {
		return nil, closeAll, err
	}
	fine, coarse := shapes(0, 0)
	for _, t := range []struct {
		name string
		o    store.BucketsOptions
	}{{"5m", fine}, {"1h", coarse}} {
		t.o.ReadOnly, t.o.Logger = true, slog.New(slog.DiscardHandler)
		b, err := store.OpenBuckets(filepath.Join(dir, t.name), t.o)
		if err != nil {
			return nil, closeAll, errors.Join(err, closeAll())
		}
		tiers = append(tiers, b)
	}
	return tiers, closeAll, nil
}

// isDataDir tells whether there is anything of a data directory.
func isDataDir(dir string) error {
	var err error
	for _, sub := range []string{"raw", "5m", "1h"} {
		var info os.FileInfo
		if info, err = os.Stat(filepath.Join(dir, sub)); err == nil && info.IsDir() {
			return nil
		}
	}
	return fmt.Errorf("%s is no data directory: %w", dir, err)
}

func (c *inspectCmd) run(ctx context.Context, out io.Writer) (err error) {
	tiers, closeAll, err := openTiers(c.DataDir)
	if err != nil {
		return err
	}
	defer func() {
		for _, t := range tiers {
			err = errors.Join(err, t.Unreadable())
		}
		err = errors.Join(err, closeAll())
	}()
	if c.Series != "" {
		return c.printBuckets(ctx, tiers, out)
	}
	var reports []tierReport
	if c.By != "" {
		sizes, err := store.RawSizeBy(ctx, filepath.Join(c.DataDir, "raw"), c.By)
		if err != nil {
			return err
		}
		reports = append(reports, tierReport{Tier: "raw", By: c.largest(sizes)})
	} else {
		raw, err := store.InspectRaw(filepath.Join(c.DataDir, "raw"))
		if err != nil {
			return err
		}
		reports = append(reports, tierReport{Tier: "raw", Blocks: raw.Blocks, HeadBytes: raw.HeadBytes})
	}
	for _, t := range tiers {
		r := tierReport{Tier: t.Name()}
		if c.By == "" {
			r.Blocks = t.Blocks()
		} else {
			sizes, err := t.SizeBy(ctx, c.By)
			if err != nil {
				return err
			}
			r.By = c.largest(sizes)
		}
		reports = append(reports, r)
	}
	if c.Format == "json" {
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		return e.Encode(reports)
	}
	return printReports(out, reports, c.By)
}

// largest are the largest first, as many as are asked for.
func (c *inspectCmd) largest(sizes map[string]store.Size) (out []sizeReport) {
	for v, s := range sizes {
		out = append(out, sizeReport{v, s})
	}
	slices.SortFunc(out, func(a, b sizeReport) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Value, b.Value))
	})
	return out[:min(len(out), max(0, c.Top))]
}

// bucketReport is one bucket of a series. Values are strings, as in Prometheus' API, for
// JSON has no NaN; what the series does not keep is left out.
type bucketReport struct {
	Tier   string `json:"tier"`
	Series string `json:"series"`
	Start  int64  `json:"start"` // Unix milliseconds
	Count  uint64 `json:"count"`
	Sum    string `json:"sum,omitempty"`
	Min    string `json:"min"`
	Max    string `json:"max"`
	First  string `json:"first,omitempty"`
	Last   string `json:"last"`
	Resets string `json:"resets,omitempty"`
	Ended  bool   `json:"ended"`
}

func reportBucket(tier string, lset labels.Labels, b fold.Bucket) bucketReport {
	number := func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
	r := bucketReport{
		Tier: tier, Series: lset.String(), Start: b.Start, Count: b.Count,
		Min: number(b.Min), Max: number(b.Max), Last: number(b.Last), Ended: b.Ended,
	}
	if b.Lacks&fold.PartSum == 0 {
		r.Sum = number(b.Sum)
	}
	if b.Lacks&fold.PartCounter == 0 {
		r.First, r.Resets = number(b.First), strconv.FormatUint(uint64(b.Resets), 10)
	}
	return r
}

// printBuckets shows what the blocks have of some series.
func (c *inspectCmd) printBuckets(ctx context.Context, tiers []*store.Buckets, out io.Writer) error {
	ms, err := parser.NewParser(parser.Options{}).ParseMetricSelector(c.Series)
	if err != nil {
		return fmt.Errorf("--series: %w", err)
	}
	asJSON := json.NewEncoder(out)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	found := false
	for _, t := range tiers {
		if c.Format == "table" {
			fmt.Fprintf(w, "tier %s\tcount\tsum\tmin\tmax\tfirst\tlast\tresets\t series\n", t.Name())
		}
		err := t.EachMatching(ctx, ms, func(lset labels.Labels, bs []fold.Bucket) error {
			for _, b := range bs {
				found = true
				r := reportBucket(t.Name(), lset, b)
				if c.Format == "json" {
					if err := asJSON.Encode(r); err != nil {
						return err
					}
					continue
				}
				fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t %s\n", stamp(r.Start), r.Count, r.Sum, r.Min, r.Max, r.First, r.Last, r.Resets, r.Series)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if !found {
		return fmt.Errorf("no block has a series %s", c.Series)
	}
	return nil
}

func printReports(out io.Writer, reports []tierReport, by string) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, r := range reports {
		if by != "" {
			fmt.Fprintf(w, "tier %s\tseries × blocks\t%ss\tbytes\tbytes a %s\t%s\t\n", r.Tier, what(r.Tier), what(r.Tier), by)
			for _, s := range r.By {
				fmt.Fprintf(w, "\t%d\t%d\t%d\t%.2f\t%q\t\n", s.Series, s.Buckets, s.Bytes, ratio(s.Bytes, s.Buckets), s.Value)
			}
			continue
		}
		var bytes, buckets int64
		fmt.Fprintf(w, "tier %s\tfrom\tto\tseries\t%ss\tbytes\tbytes a %s\t\n", r.Tier, what(r.Tier), what(r.Tier))
		for _, b := range r.Blocks {
			fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%d\t%d\t%.2f\t\n", b.ULID, stamp(b.MinTime), stamp(b.MaxTime), b.Series, b.Buckets, b.Bytes, ratio(b.Bytes, int64(b.Buckets)))
			bytes, buckets = bytes+b.Bytes, buckets+int64(b.Buckets)
		}
		if r.HeadBytes > 0 {
			fmt.Fprintf(w, "in no block yet\t\t\t\t\t%d\t\t\n", r.HeadBytes)
			bytes += r.HeadBytes
		}
		fmt.Fprintf(w, "%d blocks\t\t\t\t%d\t%d\t%.2f\t\n", len(r.Blocks), buckets, bytes, ratio(bytes, buckets))
	}
	return w.Flush()
}

// what a tier's blocks hold.
func what(tier string) string {
	if tier == "raw" {
		return "sample"
	}
	return "bucket"
}

func ratio(a, b int64) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}

func stamp(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04Z") }

func (c *verifyCmd) run(ctx context.Context, out, errout io.Writer) (err error) {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	tiers, closeAll, err := openTiers(c.DataDir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeAll()) }()
	var errs []error
	raw := 0
	errs = append(errs, store.VerifyRaw(ctx, filepath.Join(c.DataDir, "raw"), func() { raw++ }))
	fmt.Fprintf(out, "tier raw: %d blocks read\n", raw)
	for _, t := range tiers {
		show := progress(errout)
		errs = append(errs, t.Verify(ctx, func(done, of int) { show(float64(done) / float64(of)) }))
		fmt.Fprintf(out, "tier %s: %d blocks read\n", t.Name(), len(t.Blocks()))
	}
	return errors.Join(errs...)
}

// command is one of the verbs beside run.
func (c *cli) command(ctx context.Context, name string, out, errout io.Writer) (known bool, err error) {
	verbs := map[string]func() error{
		"seed":            func() error { return c.Seed.run(ctx, out, errout) },
		"inspect":         func() error { return c.Inspect.run(ctx, out) },
		"snapshot":        func() error { return c.Snapshot.run(ctx, out) },
		"backfill <from>": func() error { return c.Backfill.run(ctx, out, errout) },
		"verify":          func() error { return c.Verify.run(ctx, out, errout) },

		"tokens new":          func() error { return c.Tokens.New.run(out) },
		"tokens list":         func() error { return c.Tokens.List.run(out) },
		"tokens revoke <ids>": func() error { return c.Tokens.Revoke.run(out) },

		"rules check <files>": func() error { return c.Rules.Check.run(ctx, out, errout) },
	}
	f, ok := verbs[name]
	if !ok {
		return false, nil
	}
	return true, f()
}
