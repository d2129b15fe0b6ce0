package ring

import (
	"context"

	"github.com/ticktier/ticktier/exporter/frame"
)

// Run compresses frames once they are sealed, until ctx is done. Without it the
// ring works and holds fewer ticks. Append never waits for it: the frame stays
// readable as it is while its compressed form is made, which then takes its place,
// and where the next frame is sealed before that it stays as it is for good.
func (r *Ring) Run(ctx context.Context) error {
	var p packer
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-r.sealed:
			p.pack(r)
		}
	}
}

// packer holds what compressing one frame needs.
type packer struct {
	c       frame.Compressor
	raw, to []byte
}

// pack compresses the newest sealed frame.
func (p *packer) pack(r *Ring) {
	r.mu.Lock()
	fs := r.arena.all()
	if len(fs) == 0 || fs[len(fs)-1].packed {
		r.mu.Unlock()
		return
	}
	f := fs[len(fs)-1]
	p.raw = append(p.raw[:0], r.arena.bytes(&f)...)
	r.mu.Unlock()

	var err error
	p.to, err = p.c.Compress(p.to[:0], p.raw)
	if err != nil {
		if r.Logger != nil {
			r.Logger.Error("ring frame cannot be compressed: it is kept as it is", "frame", f.id, "err", err)
		}
		return
	}
	if len(p.to) >= len(p.raw) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if fs := r.arena.all(); len(fs) > 0 && fs[len(fs)-1].id == f.id {
		r.arena.shrink(p.to)
		r.packed++
	}
}
