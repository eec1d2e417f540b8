package whole

import (
	"context"
	"io"
)

// Until returns a writer to out that fails once the context is done.
func Until(ctx context.Context, out io.Writer) io.Writer { return until{ctx, out} }

type until struct {
	context.Context
	out io.Writer
}

func (u until) Write(b []byte) (int, error) {
	if u.Err() != nil {
		return 0, context.Cause(u)
	}
	return u.out.Write(b)
}
