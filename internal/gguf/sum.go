package gguf

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"

	"llmparity/internal/fault"
	"llmparity/internal/whole"
)

// SHA256 is the sum of the whole file, read through the descriptor that its tensors are read through: another file that
// lies under the name by now has nothing to do with it.
func (f *File) SHA256(ctx context.Context) (string, error) {
	h := sha256.New()
	_, err := io.CopyBuffer(whole.Until(ctx, h), io.NewSectionReader(f.source, 0, f.Size), make([]byte, 1<<20))
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case err != nil:
		return "", fault.Wrap(fault.BadModel, bare(err), "check the disk", "cannot read model %s", f.Name)
	}
	return hex.EncodeToString(h.Sum(nil)), f.unchanged()
}
