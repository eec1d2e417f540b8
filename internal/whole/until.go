package whole

import (
	"context"
	"io"
)

// Until gives a writer that writes to out until the context ends.
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
