//go:build zstd

package expose

import (
	"io"

	"github.com/klauspost/compress/zstd"
)

// hasZstd says that this build can compress with zstd (docs/decisions/0015).
const hasZstd = true

func newZstd(w io.Writer) io.WriteCloser {
	z, err := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest),
		zstd.WithWindowSize(64<<10), zstd.WithLowerEncoderMem(true))
	if err != nil {
		panic("BUG: expose: " + err.Error())
	}
	return z
}
