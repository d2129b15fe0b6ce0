package expose

import (
	"strconv"

	"github.com/ticktier/ticktier/collectors"
)

// starts tells when counters and histograms began at zero. A nil one knows nothing.
type starts struct {
	series func(*collectors.Series) (mono int64, ok bool)
	wall   func(mono int64) (ms int64, ok bool)
}

// of is when a counter began, in Unix ms. It is right, or it is not known.
func (s *starts) of(c *collectors.Series) (ms int64, ok bool) {
	if s == nil || c.Type != collectors.Counter {
		return 0, false
	}
	mono, ok := s.series(c)
	if !ok {
		return 0, false
	}
	return s.at(mono)
}

// at is the Unix time in ms of something that began at a monotonic time in ns.
func (s *starts) at(mono int64) (ms int64, ok bool) {
	if s == nil {
		return 0, false
	}
	return s.wall(mono)
}

// appendMs appends a time as text has it, in seconds, and ends the line.
func appendMs(dst []byte, ms int64) []byte {
	return append(strconv.AppendFloat(dst, float64(ms)/1000, 'f', 3, 64), '\n')
}

// appendTime appends a google.protobuf.Timestamp.
func appendTime(dst []byte, field int, ms int64) []byte {
	dst, m := begin(dst, field)
	dst = appendUint(dst, 1, uint64(ms/1000))
	if rest := ms % 1000; rest > 0 {
		dst = appendUint(dst, 2, uint64(rest)*1e6)
	}
	return m.end(dst)
}
