package browser

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"llmparity/browser/store"
	"llmparity/internal/engine"
	"llmparity/internal/kit/fault"
	"llmparity/internal/kit/words"
	"llmparity/internal/models"
	"llmparity/internal/record"
	"llmparity/internal/record/ran"
)

// Keeps is where the page keeps a model.
type Keeps struct {
	In     string       // record.CacheAPI …; empty: as the engine likes
	Before string       // which of its files are there when the page is opened; empty: none
	Model  models.Model // of which Before has some; the runtime offers it at the address that it had before
}

// Fills reports whether some files must be there.
func (k Keeps) Fills() bool { return k.Before == ran.StoredHalf || k.Before == ran.StoredFilled }

// CheckKeeps refuses what the browser lacks, or an engine that can keep a model only in some ways.
func (c Config) CheckKeeps(title string, can ...string) error {
	k := c.Keeps
	switch {
	case k.In != "" && !slices.Contains(can, k.In):
		return fault.New(fault.NotSupported, "use "+strings.Join(can, ", "), "%s cannot keep a model in storage %s",
			title, k.In)
	case !k.Fills():
		return nil
	case c.Launch.Running():
		return fault.New(fault.NotSupported, "omit it, or --attach",
			"stored %s needs a browser with a profile of its own", k.Before)
	case k.In == record.NoStorage || k.In == record.CrossOrigin:
		return fault.New(fault.NotSupported, "use another storage", "stored %s cannot be combined with storage %s",
			k.Before, k.In)
	}
	return nil
}

// filler makes what a launch finds in the browser's store.
type filler struct {
	runtime Runtime
	served  Served
	folder  string // with the store, between two browsers
}

// fills prepares a launch that finds some of the model. The page removes the folder in the end.
func (c *Config) fills(r Runtime, served Served) (err error) {
	if !c.Keeps.Fills() {
		return nil
	}
	if c.Keeps.Model.Path == "" {
		return errors.New("a store is only filled for a known model")
	}
	c.fill = &filler{runtime: r, served: served}
	c.fill.folder, err = store.New()
	return err
}

// clear removes the folder.
func (f *filler) clear() error {
	if f == nil {
		return nil
	}
	return os.RemoveAll(f.folder)
}

// again has an open page load the model, ends its browser, and opens the page in another browser that has what was
// stored. Nothing of this is measured.
func (f *filler) again(ctx context.Context, p *Page, to engine.Teller, open func(Config) (*Page, error)) (
	again *Page, err error) {
	device, config := p.device, p.config
	err = engine.Repeat(ctx, to, strings.ToLower(p.driver.name)+"-stored", func() (err error) {
		if p == nil {
			if p, err = open(config); err != nil {
				return err
			}
		}
		if err := f.stores(ctx, p); err != nil {
			return fmt.Errorf("filling the browser's store: %w", err)
		}
		p, config.stored = nil, f.folder
		again, err = open(config)
		config.stored = ""
		return err
	})
	if err != nil {
		return nil, err
	}
	again.device = device
	return again, nil
}

// stores loads the model in a page, and keeps what that has stored.
func (f *filler) stores(ctx context.Context, p *Page) (err error) {
	defer func() {
		p.processes.detach()
		err = errors.Join(err, p.tab.Close())
	}()
	s := &Session{Page: p, runtime: f.runtime, served: f.served, probe: engine.Unmeasured{}}
	if err := s.adapts(ctx); err != nil {
		return err
	}
	keeps := p.config.Keeps
	if err := s.Load(ctx, keeps.Model); err != nil {
		return err
	}
	if keeps.Before == ran.StoredHalf {
		call := fmt.Sprintf(store.CallHalve, f.served.InPlace)
		if _, err := callIn[bool](ctx, p, PageThread, call); err != nil {
			return err
		}
	}
	if err := p.tab.Quit(ctx); err != nil {
		return err
	}
	return p.tab.Keep(f.folder)
}

// kept asks the page what it keeps, and the kernel how much that is.
func (s *Session) kept(ctx context.Context) (found ran.Store, u store.Usage, err error) {
	if u, err = callIn[store.Usage](ctx, s.Page, PageThread, store.CallUsage); err != nil {
		return found, u, fmt.Errorf("reading what the browser stores: %w", err)
	}
	found = ran.Store{Disk: s.tab.Kept(), Reported: int64(u.Usage), Quota: int64(u.Quota)}
	found.In, found.Files = u.In(s.config.Keeps.In)
	return found, u, nil
}

// checkKept looks at the store before the load: what it is to have is there, and so is an extension.
func (s *Session) checkKept(ctx context.Context) error {
	k := s.config.Keeps
	if !k.Fills() && k.In != record.CrossOrigin {
		return nil
	}
	found, u, err := s.kept(ctx)
	switch {
	case err != nil:
		return err
	case k.In == record.CrossOrigin && !u.CrossOrigin:
		return fault.New(fault.NotSupported, "attach to a browser that has the extension, or use another storage",
			"storage %s needs a browser with navigator.crossOriginStorage", k.In)
	case k.Fills() && found.Files == 0:
		return engine.Fail(record.Other, "the browser's store is empty after it was filled")
	}
	s.before = found.Files
	return nil
}

// reportKept reports after a load what the browser keeps.
func (s *Session) reportKept(ctx context.Context) error {
	if s.reported {
		return nil
	}
	found, _, err := s.kept(ctx)
	if err != nil {
		return err
	}
	s.reported = true
	found.Before = s.before
	s.event(record.Event{Store: &found})
	if asked := s.config.Keeps.In; asked != "" && asked != record.CrossOrigin {
		s.Got(ran.As(ran.Storage, asked, found.In, words.Count(found.Files, "file")+" found in it"))
	}
	return nil
}

// Limit makes the browser grant the page so many bytes and no more, for tests of what then happens.
func (p *Page) Limit(ctx context.Context, bytes int64) error {
	tab, ok := p.tab.(interface {
		Limit(ctx context.Context, origin string, bytes int64) error
	})
	if !ok {
		return fmt.Errorf("%s has no other limits of storage", p.driver.name)
	}
	return tab.Limit(ctx, p.server.Base, bytes)
}

// overQuota says what to do about an error for which the page's quota is to blame. How large that is, Chrome tells
// nobody: it reports 10 GiB more than are used.
func overQuota(err error) error {
	if engine.ClassOf(err) != record.Quota {
		return err
	}
	return &engine.Failure{Class: record.Quota, Err: fault.Wrap(fault.Quota, err,
		"free space on the disk of the browser's profile, or set TMPDIR to a folder on another disk",
		"the page has used the storage that the browser grants")}
}
