package spool

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Range is a run of ticks of one session: numbers From to To, To excluded.
type Range struct{ Epoch, From, To uint64 }

// position is how far one receiver has come: it has every tick of the sessions
// before epoch, those of epoch before seq, and what is in ahead, which was sent
// before its turn.
type position struct {
	epoch, seq uint64
	ahead      []Range
}

// has reports whether the receiver has ticks first to last, inclusive, of a session.
func (p *position) has(epoch, first, last uint64) bool {
	if epoch < p.epoch || epoch == p.epoch && last < p.seq {
		return true
	}
	if epoch == p.epoch {
		first = max(first, p.seq)
	}
	return slices.ContainsFunc(p.ahead, func(r Range) bool { return r.Epoch == epoch && r.From <= first && last < r.To })
}

// lacks is how many of the numbers first to last, inclusive, of a session the
// receiver lacks.
func (p *position) lacks(epoch, first, last uint64) uint64 {
	switch {
	case p.has(epoch, first, last):
		return 0
	case epoch == p.epoch:
		first = max(first, p.seq)
	}
	n := last - first + 1
	for _, r := range p.ahead {
		if from, to := max(r.From, first), min(r.To, last+1); r.Epoch == epoch && from < to {
			n -= min(n, to-from)
		}
	}
	return n
}

const cursorMagic = "ticktier-cursor 1"

// cursorName is the file of a receiver. Its name is a hash because a URL's path may
// hold anything.
func cursorName(receiver string) string {
	sum := sha256.Sum256([]byte(receiver))
	return "cursor." + hex.EncodeToString(sum[:8])
}

// append writes the position as the text of its file.
func (p *position) append(dst []byte, receiver string) []byte {
	at := len(dst)
	dst = fmt.Appendf(dst, "%s\nfor %q\nnext %d %d\n", cursorMagic, receiver, p.epoch, p.seq)
	for _, r := range p.ahead {
		dst = fmt.Appendf(dst, "ahead %d %d %d\n", r.Epoch, r.From, r.To)
	}
	return fmt.Appendf(dst, "sum %08x\n", checksum(dst[at:]))
}

// maxCursorFile bounds the file of a position, maxAhead the ranges in it.
const (
	maxCursorFile = 64 << 10
	maxAhead      = 256
)

// parsePosition reads what append wrote.
func parsePosition(b []byte) (p position, receiver string, err error) {
	bad := fmt.Errorf("%w: no position", errBad)
	text := string(b)
	i := strings.LastIndex(text, "sum ")
	if i < 0 || text[i:] != fmt.Sprintf("sum %08x\n", checksum(b[:i])) {
		return position{}, "", fmt.Errorf("%w: checksum of a position", errBad)
	}
	lines := strings.Split(strings.TrimSuffix(text[:i], "\n"), "\n")
	if len(lines) < 3 || lines[0] != cursorMagic {
		return position{}, "", bad
	}
	if receiver, err = strconv.Unquote(strings.TrimPrefix(lines[1], "for ")); err != nil {
		return position{}, "", bad
	}
	n, ok := numbers(lines[2], "next ", 2)
	if !ok || len(lines) > 3+maxAhead {
		return position{}, "", bad
	}
	p.epoch, p.seq = n[0], n[1]
	for _, line := range lines[3:] {
		n, ok := numbers(line, "ahead ", 3)
		if !ok || n[1] >= n[2] {
			return position{}, "", bad
		}
		p.ahead = append(p.ahead, Range{n[0], n[1], n[2]})
	}
	return p, receiver, nil
}

// numbers reads a line of a word and n numbers.
func numbers(line, word string, n int) ([]uint64, bool) {
	rest, ok := strings.CutPrefix(line, word)
	fields := strings.Split(rest, " ")
	if !ok || len(fields) != n {
		return nil, false
	}
	out := make([]uint64, n)
	for i, f := range fields {
		v, err := strconv.ParseUint(f, 10, 64)
		if err != nil {
			return nil, false
		}
		out[i] = v
	}
	return out, true
}
