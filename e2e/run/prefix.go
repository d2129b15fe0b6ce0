package main

import (
	"bytes"
	"io"
	"sync"
)

// prefixer writes lines to w with the name of the program that they are from. Two
// of them may share w if they share mu.
type prefixer struct {
	name string
	w    io.Writer
	mu   *sync.Mutex
	rest []byte // the beginning of a line whose end has not come
}

func (p *prefixer) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rest = append(p.rest, b...)
	for {
		i := bytes.IndexByte(p.rest, '\n')
		if i < 0 {
			return len(b), nil
		}
		line := append([]byte(p.name+" | "), p.rest[:i+1]...)
		p.rest = p.rest[i+1:]
		if _, err := p.w.Write(line); err != nil {
			return len(b), err
		}
	}
}
