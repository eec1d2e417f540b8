package gguf

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"

	"llmparity/internal/fault"
)

// SHA256 is the sum of the whole file, read through the descriptor that its tensors are read through: another file that
// lies under the name by now has nothing to do with it.
func (f *File) SHA256(ctx context.Context) (string, error) {
	h := sha256.New()
	if _, err := io.CopyBuffer(h, untilDone{ctx, io.NewSectionReader(f.source, 0, f.Size)},
		make([]byte, 1<<20)); err != nil {
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		return "", fault.Wrap(fault.BadModel, bare(err), "check the disk", "cannot read model %s", f.Name)
	}
	return hex.EncodeToString(h.Sum(nil)), f.unchanged()
}

// untilDone is a reader that the end of a context ends.
type untilDone struct {
	ctx  context.Context
	from io.Reader
}

func (u untilDone) Read(b []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.from.Read(b)
}
