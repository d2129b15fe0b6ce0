//go:build !zstd

package expose

import "io"

const hasZstd = false

func newZstd(io.Writer) io.WriteCloser { panic("BUG: expose: this build has no zstd") }
