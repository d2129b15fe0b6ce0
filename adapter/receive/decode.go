package receive

import (
	"errors"
	"fmt"
	"hash/maphash"
)

// protocol is the remote-write message a request carries.
type protocol uint8

const (
	protoNone protocol = iota // not known yet
	proto1                    // prometheus.WriteRequest
	proto2                    // io.prometheus.write.v2.Request
)

func (p protocol) String() string {
	switch p {
	case proto1:
		return "1.0"
	case proto2:
		return "2.0"
	}
	return "none"
}

// limitError is a message that is well formed and larger than allowed.
type limitError struct{ what string }

func (e limitError) Error() string { return e.what }

var errWrongSchema = errors.New("the body is a message of the other protocol version: " +
	"Content-Type must say which one it is")

// span is a part of the decoded body.
type span struct{ from, to uint32 }

// symbol is an entry of a 2.0 symbol table. hash is 0 until it is needed.
type symbol struct {
	span
	hash uint64
}

// request is one decoded message: the spans of its parts. It is reused; nothing in it
// is valid after the body buffer is.
type request struct {
	body     []byte
	proto    protocol
	symbols  []symbol
	series   []span
	families []span // 1.0 only: MetricMetadata messages
}

func (q *request) reset() {
	*q = request{symbols: q.symbols[:0], series: q.series[:0], families: q.families[:0]}
}

func (q *request) bytes(s span) []byte { return q.body[s.from:s.to:s.to] }

// scan walks the top level of a message of at most 4 GiB and remembers where its
// parts are. The parts themselves are not looked at.
func (q *request) scan(body []byte, p protocol) error {
	q.reset()
	q.body, q.proto = body, p
	alien := false
	for i := 0; i < len(body); {
		num, typ, next, err := tag(body, i)
		if err != nil {
			return fmt.Errorf("at byte %d: %w", i, err)
		}
		dst := q.list(num)
		if dst == nil && !(p == proto2 && num == 4) {
			alien = alien || p == proto1 && (num == 4 || num == 5) || p == proto2 && (num == 1 || num == 3)
			if i, err = skip(body, i); err != nil {
				return fmt.Errorf("in a field of number %d: %w", num, err)
			}
			continue
		}
		if typ != wireBytes {
			return fmt.Errorf("at byte %d: %w", i, errWireType)
		}
		data, end, err := chunk(body, next)
		if err != nil {
			return fmt.Errorf("at byte %d: %w", i, err)
		}
		s := span{from: uint32(end - len(data)), to: uint32(end)}
		i = end
		if dst != nil {
			if len(*dst) == maxRequestSeries {
				return limitError{fmt.Sprintf("the request has more than %d series", maxRequestSeries)}
			}
			*dst = append(*dst, s)
			continue
		}
		if len(q.symbols) == maxSymbols {
			return limitError{fmt.Sprintf("the symbol table has more than %d entries", maxSymbols)}
		}
		q.symbols = append(q.symbols, symbol{span: s})
	}
	if alien && len(q.series)+len(q.families)+len(q.symbols) == 0 {
		return errWrongSchema
	}
	return nil
}

// list returns where spans of the top-level field num go, nil for others.
func (q *request) list(num int32) *[]span {
	switch {
	case q.proto == proto1 && num == 1, q.proto == proto2 && num == 5:
		return &q.series
	case q.proto == proto1 && num == 3:
		return &q.families
	}
	return nil
}

// symbol returns the text and the hash of a reference; ok is false when the table is
// shorter.
func (q *request) symbol(seed maphash.Seed, ref uint32) (text []byte, hash uint64, ok bool) {
	if uint64(ref) >= uint64(len(q.symbols)) {
		return nil, 0, false
	}
	s := &q.symbols[ref]
	text = q.bytes(s.span)
	if s.hash == 0 {
		s.hash = maphash.Bytes(seed, text) | 1
	}
	return text, s.hash, true
}
