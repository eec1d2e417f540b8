package browser

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"llmparity/browser/hardware"
	"llmparity/internal/host/cache"
	"llmparity/internal/record"
)

// memory keeps, for all sessions of this process, in which way the browser has a GPU.
var memory = hardware.Memory{Path: filepath.Join(cache.Dir(os.Getenv), hardware.File)}

// openIn opens the page as configured, or if a GPU is asked for, in the first way that has one.
func openIn(ctx context.Context, c Config, path string, open func(Config) (*Page, error)) (*Page, error) {
	if c.Adapter != GPU || c.Launch.Running() {
		return open(c)
	}
	ways := slices.DeleteFunc(driverOf(path).ways(runtime.GOOS), func(w hardware.Way) bool {
		return c.Launch.Headed && w.Headed // every way has the window already
	})
	search := hardware.Search[*Page]{Ways: ways, Memory: &memory, Key: hardware.Key(path, c.Launch.Flags),
		Open: func(ctx context.Context, w hardware.Way) (*Page, record.Device, error) {
			return c.in(ctx, w, open)
		},
		Close: func(p *Page) error { p.processes.detach(); return p.tab.Close() }, // the server stays for the next page
	}
	p, device, err := search.Find(ctx)
	if err != nil {
		return nil, err
	}
	p.device = &device
	return p, nil
}

// Tried are the ways in which a GPU was looked for, if no adapter answered at all.
func Tried(err error) []string {
	if nothing, ok := errors.AsType[*hardware.Nothing](err); ok {
		return nothing.Tried
	}
	return nil
}

// in opens the page in one way, and asks for its adapter.
func (c Config) in(ctx context.Context, w hardware.Way, open func(Config) (*Page, error)) (*Page, record.Device,
	error) {
	c.Launch.Flags = slices.Concat(w.Flags, c.Launch.Flags) // the last one counts
	c.Launch.Headed = c.Launch.Headed || w.Headed
	p, err := open(c)
	if err != nil {
		return nil, record.Device{}, err
	}
	d, err := p.Device(ctx)
	if err != nil {
		_ = p.tab.Close() // only the first error matters
		return nil, d, err
	}
	return p, d, nil
}
