package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/ticktier/ticktier/adapter/access"
	"github.com/ticktier/ticktier/adapter/config"
)

// tokensCmd are the verbs about token files. A running adapter reads the file again by
// itself.
type tokensCmd struct {
	New    tokensNewCmd    `cmd:"" help:"Make a token, print it, and add its hash to the file. It cannot be shown again."`
	List   tokensListCmd   `cmd:"" help:"List the tokens of a file."`
	Revoke tokensRevokeCmd `cmd:"" help:"Revoke tokens at once."`
}

type tokensNewCmd struct {
	File        string            `required:"" help:"The token file; it is made if it is not there." placeholder:"FILE"`
	Instance    string            `help:"The device: the instance label of all that is pushed with the token." placeholder:"NAME"`
	Label       map[string]string `help:"Another label that is forced; may be repeated." placeholder:"NAME=VALUE"`
	Right       string            `help:"What the token is for: write, read or admin (default ${default})." enum:"write,read,admin" default:"write" placeholder:"RIGHT"`
	ID          string            `name:"id" help:"Name of the token in lists and for revoke (default: the instance or right, and a part of the hash)." placeholder:"ID"`
	For         config.Duration   `help:"How long it is valid; 0 for ever (default ${default})." default:"0" placeholder:"TIME"`
	From        time.Time         `help:"From when on, as 2026-11-30T00:00:00Z (default: now)." placeholder:"TIME"`
	Replaces    string            `help:"Token that it takes the place of: it gets its right and labels, and that one ends after --overlap." placeholder:"ID"`
	Overlap     config.Duration   `help:"How long the replaced token goes on to be valid (default ${default})." default:"24h" placeholder:"TIME"`
	Certificate string            `help:"Make no token: let in who has a client certificate, verified by --web.config.file, with this name." placeholder:"NAME"`
	Comment     string            `help:"A remark." placeholder:"TEXT"`
}

func (c *tokensNewCmd) run(out io.Writer) error {
	now := time.Now().UTC().Truncate(time.Second)
	t := access.Token{ID: c.ID, Certificate: c.Certificate, Right: access.Right(c.Right), Labels: maps.Clone(c.Label), Comment: c.Comment}
	if t.Labels == nil {
		t.Labels = map[string]string{}
	}
	if c.Instance != "" {
		t.Labels["instance"] = c.Instance
	}
	var secret string
	if c.Certificate == "" {
		secret, t.Hash = access.NewSecret()
	}
	begin := now
	if !c.From.IsZero() {
		begin = c.From.UTC()
		t.From = &begin
	}
	if c.For < 0 || c.Overlap < 0 {
		return errors.New("--for and --overlap: less than 0")
	}
	if c.For > 0 {
		until := begin.Add(time.Duration(c.For))
		t.Until = &until
	}
	err := access.Edit(c.File, func(list []access.Token) ([]access.Token, error) {
		if err := c.replace(list, &t, begin); err != nil {
			return nil, err
		}
		if t.ID == "" {
			t.ID = newID(&t)
		}
		return append(list, t), nil
	})
	if err != nil {
		return err
	}
	if secret != "" {
		fmt.Fprintln(out, secret)
	}
	return nil
}

// replace takes over from the token that is replaced, and lets it end.
func (c *tokensNewCmd) replace(list []access.Token, t *access.Token, begin time.Time) error {
	if c.Replaces == "" {
		return nil
	}
	i := slices.IndexFunc(list, func(o access.Token) bool { return o.ID == c.Replaces })
	if i < 0 {
		return fmt.Errorf("--replaces: there is no token %q", c.Replaces)
	}
	old := &list[i]
	t.Right = old.Right
	for name, value := range old.Labels {
		if _, ok := t.Labels[name]; !ok {
			t.Labels[name] = value
		}
	}
	if end := begin.Add(time.Duration(c.Overlap)); old.Until == nil || old.Until.After(end) {
		old.Until = &end
	}
	if old.From != nil && !old.From.Before(*old.Until) {
		old.From = nil
	}
	return nil
}

// newID names a token by what it is for and, so that there may be several, its hash.
func newID(t *access.Token) string {
	name := t.Labels["instance"]
	if name == "" {
		name = string(t.Right)
	}
	clean := strings.Map(func(r rune) rune {
		if r < 0x80 && (r >= '0' && r <= '9' || r|0x20 >= 'a' && r|0x20 <= 'z' || strings.ContainsRune("._:-", r)) {
			return r
		}
		return '-'
	}, name)
	tail := "cert"
	if t.Hash != "" {
		tail = t.Hash[len(t.Hash)-6:]
	}
	return clean[:min(len(clean), 100)] + "-" + tail
}

type tokensListCmd struct {
	File string `required:"" help:"The token file." placeholder:"FILE"`
}

func (c *tokensListCmd) run(out io.Writer) error {
	b, err := os.ReadFile(c.File)
	if err != nil {
		return err
	}
	set, err := access.ParseTokens(b)
	if err != nil {
		return fmt.Errorf("%s: %w", c.File, err)
	}
	now := time.Now()
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tRIGHT\tSTATE\tFROM\tUNTIL\tLABELS\tCOMMENT")
	for _, t := range set.List() {
		var labels []string
		for _, name := range slices.Sorted(maps.Keys(t.Labels)) {
			labels = append(labels, name+"="+t.Labels[name])
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", t.ID, t.Right, t.At(now), dateOf(t.From), dateOf(t.Until), strings.Join(labels, ","), t.Comment)
	}
	return w.Flush()
}

// dateOf shows a time that may be left out.
func dateOf(t *time.Time) string {
	if t == nil {
		return "-"
	}
	return t.UTC().Format(time.RFC3339)
}

type tokensRevokeCmd struct {
	IDs  []string `arg:"" name:"ids" help:"Tokens to revoke." placeholder:"ID"`
	File string   `required:"" help:"The token file." placeholder:"FILE"`
}

func (c *tokensRevokeCmd) run(out io.Writer) error {
	if _, err := os.Stat(c.File); err != nil {
		return err
	}
	now := time.Now().UTC().Truncate(time.Second)
	err := access.Edit(c.File, func(list []access.Token) ([]access.Token, error) {
		for _, id := range c.IDs {
			i := slices.IndexFunc(list, func(t access.Token) bool { return t.ID == id })
			if i < 0 {
				return nil, fmt.Errorf("there is no token %q; nothing is revoked", id)
			}
			if list[i].Revoked == nil {
				list[i].Revoked = &now
			}
		}
		return list, nil
	})
	if err == nil {
		fmt.Fprintln(out, "revoked:", strings.Join(c.IDs, " "))
	}
	return err
}
