package history

import (
	"context"
	"strings"
	"time"

	"llmparity/internal/kit/fault"
)

// Describe completes a commit by what git knows of it in the current folder. Outside a repository, or of a commit that
// it lacks, the name is all there is.
func Describe(ctx context.Context, sha, when string) (Commit, error) {
	c := Commit{SHA: sha}
	if !strings.HasPrefix(sha, "-") && sha != "" {
		const form = "--format=%H%x00%cI%x00%an%x00%s"
		if out, err := (branch{}).git(ctx, nil, nil, "show", "-s", form, sha+"^{commit}"); err == nil {
			if parts := strings.Split(out, "\x00"); len(parts) == 4 {
				c.SHA, c.Author, c.Subject = parts[0], parts[2], parts[3]
				if t, err := time.Parse(time.RFC3339, parts[1]); err == nil {
					c.Time = t.UTC()
				}
			}
		}
	}
	if c.SHA == "HEAD" {
		return c, fault.New(fault.Usage, "run it in a repository, or name the commit", "commit HEAD is not known here")
	}
	if when == "" {
		return c, nil
	}
	t, err := time.Parse(time.RFC3339, when)
	if err != nil {
		return c, fault.New(fault.Usage, "write it like 2026-03-14T09:26:53Z", "--time: %q is not a time", when)
	}
	c.Time = t.UTC()
	return c, nil
}
