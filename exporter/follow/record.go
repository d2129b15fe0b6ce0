package follow

import (
	"errors"
	"fmt"
	"io"
)

// Record writes objects as JSON lines until src ends or is broken off, and returns
// how many ticks were among them. A src that is broken off is no error once there
// was a tick.
func Record(dst io.Writer, src io.Reader) (ticks int, err error) {
	r := NewReader(src)
	for {
		o, err := r.Next()
		switch {
		case errors.Is(err, io.EOF), err != nil && ticks > 0:
			return ticks, nil
		case err != nil:
			return ticks, err
		}
		if o.Tick != nil {
			ticks++
		}
		if _, err := dst.Write(append(r.Line, '\n')); err != nil {
			return ticks, fmt.Errorf("write: %w", err)
		}
	}
}
