package driver

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"llmparity/internal/host/child"
)

// Folder is that of the browser's profile.
func (p *Process) Folder() string { return filepath.Join(p.Scratch, "profile") }

// Restore gives the profile what pages stored in an earlier one, before the browser starts.
func (p *Process) Restore(o Options) error {
	if o.Stored == "" {
		return nil
	}
	p.About.Policy["profile"] = "empty but for the model's store"
	return p.Stores.Move(o.Stored, p.Folder())
}

// Keep moves what pages have stored into a folder, once the browser has quit.
func (p *Process) Keep(folder string) error { return p.Stores.Move(p.Folder(), folder) }

// Kept is the size of what pages have stored, in bytes; -1: not known.
func (p *Process) Kept() int64 {
	if p.Scratch == "" {
		return -1
	}
	return p.Stores.Size(p.Folder())
}

// Quits is how long a browser may take to write its profile and end.
const Quits = 30 * time.Second

// Ends waits for all processes of a browser that was asked to quit.
func (p *Process) Ends(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, Quits, fmt.Errorf("not within %g s", Quits.Seconds()))
	defer cancel()
	for len(child.Group(p.About.PID)) > 0 {
		select {
		case <-ctx.Done():
			return fmt.Errorf("the browser did not quit: %w", context.Cause(ctx))
		case <-time.After(5 * time.Millisecond):
		}
	}
	return nil
}
