package access

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"

	"go.yaml.in/yaml/v3"
)

// maxFileBytes bounds a file: 40,000 devices take 10 MB.
const maxFileBytes = 64 << 20

// document is a token file.
type document struct {
	Tokens []Token `yaml:"tokens"`
}

// ParseTokens reads a token file. An empty one lets nobody in.
func ParseTokens(b []byte) (*Tokens, error) {
	if len(b) > maxFileBytes {
		return nil, fmt.Errorf("more than %d bytes", maxFileBytes)
	}
	var doc document
	d := yaml.NewDecoder(bytes.NewReader(b))
	d.KnownFields(true)
	if err := d.Decode(&doc); err != nil && !errors.Is(err, io.EOF) {
		return nil, hideValues(err)
	}
	if err := d.Decode(new(any)); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one YAML document")
	}
	return newTokens(doc.Tokens)
}

func newTokens(list []Token) (*Tokens, error) {
	if list == nil {
		list = []Token{}
	}
	s := &Tokens{list: list, byHash: make(map[[32]byte]*Token, len(list)), byName: map[string]*Token{}, forced: make(map[*Token]*Entry, len(list))}
	ids := make(map[string]bool, len(list))
	for i := range list {
		t := &list[i]
		sum, err := t.check()
		if err != nil {
			return nil, fmt.Errorf("token %d (%q): %w", i+1, clip(t.ID), err)
		}
		if ids[t.ID] {
			return nil, fmt.Errorf("token %d: the id %s is there twice", i+1, t.ID)
		}
		ids[t.ID] = true
		if t.Certificate != "" {
			if s.byName[t.Certificate] != nil {
				return nil, fmt.Errorf("token %d (%s): the certificate's name is there twice", i+1, t.ID)
			}
			s.byName[t.Certificate] = t
		} else {
			if s.byHash[sum] != nil {
				return nil, fmt.Errorf("token %d (%s): the hash is there twice", i+1, t.ID)
			}
			s.byHash[sum] = t
		}
		s.forced[t] = entryOf(t)
	}
	return s, nil
}

// hideValues keeps what the decoder says of where and what, but not the values it
// quotes: one of them may be a secret in the wrong place.
func hideValues(err error) error {
	var date *time.ParseError
	if errors.As(err, &date) {
		return errors.New("not a token file; a time is not as 2026-11-30T00:00:00Z")
	}
	var typed *yaml.TypeError
	if !errors.As(err, &typed) {
		return err
	}
	out := errors.New("not a token file")
	for _, line := range typed.Errors {
		if i := bytes.IndexByte([]byte(line), '`'); i >= 0 {
			line = line[:i] + "…"
		}
		out = fmt.Errorf("%w; %s", out, line)
	}
	return out
}
