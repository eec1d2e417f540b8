package deepen

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"llmparity/internal/bench/once"
	"llmparity/internal/depth"
	"llmparity/internal/engine"
	"llmparity/internal/kit/fault"
	"llmparity/internal/kit/whole"
	"llmparity/internal/models"
)

// Page writes a flame graph as a page, compared with that of an earlier profile; before is nil if there is none.
type Page func(w io.Writer, title string, stacks, before *depth.Stacks) error

// Folder is where a profile of several engines goes.
type Folder struct {
	Path   string
	before string
	page   Page
	names  []string // of the engines
	found  map[string]depth.Profile
}

// NewFolder makes a folder in out.
func NewFolder(out, before string, page Page) (*Folder, error) {
	if before != "" {
		if _, err := os.Stat(filepath.Join(before, csvName)); err != nil {
			return nil, fault.New(fault.Usage, "name the folder of an earlier profile", "--before %s has no %s",
				before, csvName)
		}
	}
	path := filepath.Join(out, "profile-"+time.Now().Format("20060102-150405"))
	if err := os.MkdirAll(path, 0o755); err != nil {
		return nil, fmt.Errorf("making the folder of the profile: %w", err)
	}
	return &Folder{Path: path, before: before, page: page, found: map[string]depth.Profile{}}, nil
}

const csvName, pprofEnding = "profile.csv", ".pb.gz"

// Profile profiles one generation of an engine, and writes its stacks.
func (f *Folder) Profile(ctx context.Context, e engine.Engine, m models.Model, r engine.Request, out io.Writer,
	allowed bool) (err error) {
	s, err := once.Open(ctx, e, m, out, allowed)
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, s.Close()) }()
	r.IgnoreEOS = e.Caps().IgnoreEOS
	name := e.Name()
	found, err := Generation(ctx, s, r, filepath.Join(f.Path, name))
	if err != nil {
		return fmt.Errorf("profiling %s: %w", name, err)
	}
	for i := range found.Rows {
		found.Rows[i].Engine, found.Rows[i].Launch = name, 1
	}
	f.names, f.found[name] = append(f.names, name), found.Profile
	return f.stacks(name, found.Stacks)
}

// stacks writes an engine's stacks in each form.
func (f *Folder) stacks(name string, s *depth.Stacks) error {
	if s == nil {
		return nil
	}
	before, err := f.earlier(name)
	if err != nil {
		return err
	}
	return errors.Join(
		f.file(name+".folded", s.WriteFolded),
		f.file(name+".speedscope.json", func(w io.Writer) error { return s.WriteSpeedscope(w, name) }),
		f.file(name+pprofEnding, s.Pprof().Write),
		f.file(name+".html", func(w io.Writer) error { return f.page(w, name, s, before) }))
}

// earlier returns the stacks of an engine in the earlier profile; nil if there are none.
func (f *Folder) earlier(name string) (*depth.Stacks, error) {
	if f.before == "" {
		return nil, nil
	}
	in, err := os.Open(filepath.Join(f.before, name+pprofEnding))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer in.Close()
	s, err := depth.ReadPprof(in)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", in.Name(), err)
	}
	return s, nil
}

func (f *Folder) file(name string, write func(io.Writer) error) error {
	return whole.Write(filepath.Join(f.Path, name), write)
}

// Write writes the rows of all engines, and prints the tables.
func (f *Folder) Write(out io.Writer) error {
	var rows []depth.Row
	for _, name := range f.names {
		rows = append(rows, f.found[name].Rows...)
	}
	table := func(w io.Writer) error { return depth.Table(w, f.found, f.names, 12) }
	if err := f.file(csvName, func(w io.Writer) error { return depth.WriteCSV(w, rows) }); err != nil {
		return err
	}
	if err := f.file("profile.txt", table); err != nil {
		return err
	}
	if err := table(out); err != nil {
		return err
	}
	entries, err := os.ReadDir(f.Path)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if filepath.Ext(e.Name()) == ".html" {
			fmt.Fprintf(out, "flame graph  %s\n", filepath.Join(f.Path, e.Name()))
		}
	}
	return nil
}
