package catalogue

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"llmparity/internal/cache"
	"llmparity/internal/fault"
	"llmparity/internal/whole"
)

// Options say where a model is fetched from and to.
type Options struct {
	Store  string // see Store
	Mirror string // an address or a folder below which the public addresses' paths lie; empty: those themselves
	// Features are those of the adapter that is to run the model: one that it lacks is told before anything is fetched.
	// Nil: not known.
	Features []string
	// Transport carries requests to addresses; nil: one that goes by the environment's proxy. Redirections are checked
	// above it.
	Transport http.RoundTripper

	patience patience // zero: the usual one
}

// patience is how long trouble is borne.
type patience struct {
	tries   int           // in a row, without much coming of them
	backoff time.Duration // before the second one; it doubles
	stall   time.Duration // without a byte
}

func (p patience) orUsual() patience {
	return patience{cmp.Or(p.tries, 5), cmp.Or(p.backoff, 500*time.Millisecond), cmp.Or(p.stall, time.Minute)}
}

// atOnce is how many shards are fetched at a time: one connection is seldom as fast as the network.
const atOnce = 4

// Check refuses a model for an adapter that lacks a feature which the model needs. Nil features are not known.
func (e Entry) Check(features []string) error {
	if features == nil {
		return nil
	}
	lacks := func(kind fault.Kind, feature, do string) error {
		return fault.New(kind, do, "model %s needs %s, which the WebGPU adapter does not have", e.ID, feature)
	}
	if e.Needs(ShaderF16) && !slices.Contains(features, ShaderF16) {
		return lacks(fault.NoF16, ShaderF16,
			"choose a model that does without (q0f32, q4f32: llmparity model list shows it), or use a GPU that has it")
	}
	for _, feature := range e.Features {
		if !slices.Contains(features, feature) {
			return lacks(fault.NoAdapter, feature, "choose another model, or use a GPU that has it")
		}
	}
	return nil
}

// Fetch gives the entry's model out of the store, and fetches what is missing of it first; tell, which may be nil,
// hears of that. What a fetch that was ended has left is used by the next. Without a mirror a stored model is taken
// wherever it is from; with one, only from there: weights that are the same are not fetched again even so.
func Fetch(ctx context.Context, e Entry, o Options, tell func(Progress)) (Package, error) {
	if err := e.Check(o.Features); err != nil {
		return Package{}, err
	}
	if err := e.validate(); err != nil {
		return Package{}, fault.Wrap(fault.BadModel, err, "", "the entry of model %q", e.ID)
	}
	from, err := newSource(o.Mirror, o.Transport)
	if err != nil {
		return Package{}, err
	}
	defer from.close()
	if p, ok := stored(e, o, from); ok {
		return p, p.verify(ctx, p.small())
	}
	if err := cache.MkdirAll(o.Store); err != nil {
		return Package{}, err
	}
	m := newMeter(e.ID, tell)
	unlock, err := whole.Lock(ctx, lockPath(o.Store, e.ID),
		func() { m.note("waiting for another download of it to end") })
	if err != nil {
		return Package{}, diskFault(err, o.Store)
	}
	defer unlock()
	if p, ok := stored(e, o, from); ok { // by the one that was waited for
		return p, nil
	}
	f := &fetcher{entry: e, from: from, store: o.Store, work: workDir(o.Store, e.ID), patience: o.patience.orUsual(),
		meter: m}
	p, err := f.run(ctx)
	if err != nil && ctx.Err() != nil {
		return Package{}, fmt.Errorf("fetching %s: %w", e.ID, context.Cause(ctx))
	}
	return p, err
}

// stored gives the model if the store has it, of the library that the entry names.
func stored(e Entry, o Options, from *source) (Package, bool) {
	p, err := Open(o.Store, e.ID)
	if err != nil || p.Entry.Model != e.Model || p.Entry.Library != e.Library || p.Entry.Manifest != e.Manifest {
		return Package{}, false
	}
	p.Entry = e
	return p, from.mirror == nil || p.Source == from.name
}

// fetcher fetches one model, under its lock.
type fetcher struct {
	entry    Entry
	from     *source
	store    string
	work     string // the folder where it grows
	patience patience
	meter    *meter
}

func (f *fetcher) run(ctx context.Context) (Package, error) {
	if err := f.begin(); err != nil {
		return Package{}, diskFault(err, f.store)
	}
	files, weights, err := f.around(ctx)
	if err != nil {
		return Package{}, err
	}
	shards, err := f.shards(ctx, weights)
	if err != nil {
		if wrong(err) {
			// The lists may be of another version than the weights: another time all are asked for.
			err = cmp.Or(diskFault(f.forget(), f.store), err)
		}
		return Package{}, err
	}
	p, err := f.finish(append(files, shards...))
	if err != nil {
		return Package{}, diskFault(err, f.store)
	}
	return p, nil
}

// origin is what a work folder's files are of.
type origin struct{ Model, Library, Source string }

const originName = "origin.json"

// begin makes the work folder. Of one that was left, everything stays if it is of the same addresses, and else the
// shards: whether those are the right ones is known.
func (f *fetcher) begin() error {
	want := origin{f.entry.Model, f.entry.Library, f.from.name}
	var have origin
	text, err := os.ReadFile(filepath.Join(f.work, originName))
	if err == nil && json.Unmarshal(text, &have) == nil && have == want {
		return nil
	}
	if err := os.MkdirAll(f.work, 0o755); err != nil {
		return err
	}
	if err := f.forget(); err != nil {
		return err
	}
	if text, err = json.Marshal(want); err != nil {
		return err
	}
	return writeFile(filepath.Join(f.work, originName), text)
}

// forget removes the files of which nothing tells whether they are the right ones.
func (f *fetcher) forget() error {
	return sweep(f.work, func(name string) bool { return name == originName || !reserved(strings.ToLower(name)) })
}

const (
	maxText    = 256 << 20 // of a list or a tokenizer, which are below 40 MB
	maxLibrary = 512 << 20
)

// around fetches all files but the weights: the settings first, which tell what else there is.
func (f *fetcher) around(ctx context.Context) (files []File, w Weights, err error) {
	var tokenizer string
	get := func(name string, check func([]byte) error) error {
		file, err := f.get(ctx, wanted{name: name, url: f.from.file(f.entry, name), bytes: -1, max: maxText,
			check: ofFile(check)})
		if err == nil {
			files = append(files, file)
		}
		return err
	}
	asJSON := func(text []byte) error {
		var any json.RawMessage
		return json.Unmarshal(text, &any)
	}
	if err := get(ConfigName, func(text []byte) (err error) {
		tokenizer,
			err = parseConfig(text)
		return err
	}); err != nil {
		return nil, w, err
	}
	list := func(text []byte) (err error) { w, err = ParseWeights(text); return err }
	if err := f.eitherList(get, list); err != nil {
		return nil, w, err
	}
	if f.entry.Manifest != "" {
		if err := get(f.entry.Manifest, asJSON); err != nil {
			return nil, w, err
		}
	}
	check := asJSON
	if tokenizer != "tokenizer.json" {
		check = func([]byte) error { return nil }
	}
	if err := get(tokenizer, check); err != nil {
		return nil, w, err
	}
	library, err := f.get(ctx, wanted{name: LibraryName, url: f.from.library(f.entry), bytes: -1, max: maxLibrary,
		check: ofFile(parseLibrary)})
	return append(files, library), w, err
}

// eitherList fetches the list of the weights under the name that it has. Where neither is there, the newer name's
// trouble counts.
func (f *fetcher) eitherList(get func(string, func([]byte) error) error, list func([]byte) error) error {
	err := get(weightsName, list)
	if missing(err) {
		if e := get(oldWeightsName, list); !missing(e) {
			return e
		}
	}
	return err
}

// ofFile makes a check of a file's content one of the file.
func ofFile(check func([]byte) error) func(path string) error {
	return func(path string) error {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return check(text)
	}
}

// shards fetches the weights, some shards at a time. The first error ends it.
func (f *fetcher) shards(ctx context.Context, w Weights) ([]File, error) {
	f.meter.expect(w.Bytes(), len(w.Shards))
	f.reuse(w)
	if err := f.room(w); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	files := make([]File, len(w.Shards))
	todo := make(chan int, len(w.Shards))
	for i := range w.Shards {
		todo <- i
	}
	close(todo)
	var workers sync.WaitGroup
	for range min(atOnce, len(w.Shards)) {
		workers.Go(func() {
			for i := range todo {
				s := w.Shards[i]
				var err error
				w := wanted{name: s.File, url: f.from.file(f.entry, s.File), bytes: s.Bytes, md5: s.MD5, max: s.Bytes}
				if files[i], err = f.get(ctx, w); err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	workers.Wait()
	return files, context.Cause(ctx)
}

// reuse takes the shards of an older package in the store's place by other names for the same files; whether they are
// the right ones is checked as that of every file that is there.
func (f *fetcher) reuse(w Weights) {
	for _, s := range w.Shards {
		old := filepath.Join(f.store, f.entry.ID, s.File)
		if info, err := os.Stat(old); err == nil && info.Size() == s.Bytes {
			_ = os.Link(old, filepath.Join(f.work, s.File)) // else it is fetched
		}
	}
}

// room tells whether the weights that are still missing find place on the disk.
func (f *fetcher) room(w Weights) error {
	missing := w.Bytes()
	for _, s := range w.Shards {
		for _, name := range []string{s.File, s.File + partial} {
			if info, err := os.Stat(filepath.Join(f.work, name)); err == nil {
				missing -= min(info.Size(), s.Bytes)
				break
			}
		}
	}
	if n, ok := free(f.work); ok && missing > n {
		return fault.New(fault.DiskFull, "free some space, or set another cache folder with "+cache.Variable,
			"model %s takes %s more, but %s has room for %s", f.entry.ID, size(missing), f.store, size(n))
	}
	return nil
}

// finish writes down what was fetched and moves it to its place.
func (f *fetcher) finish(files []File) (Package, error) {
	slices.SortFunc(files, func(a, b File) int { return cmp.Compare(a.Name, b.Name) })
	text, err := json.MarshalIndent(manifest{manifestSchema, f.entry, f.from.name,
		time.Now().UTC().Truncate(time.Second), files},
		"", "  ")
	if err != nil {
		return Package{}, err
	}
	if err := sweep(f.work, func(name string) bool { // what is none of the model's
		return slices.ContainsFunc(files, func(f File) bool { return f.Name == name })
	}); err != nil {
		return Package{}, err
	}
	if err := writeFile(filepath.Join(f.work, manifestName), append(text, '\n')); err != nil {
		return Package{}, err
	}
	if _, err := open(f.work, f.entry.ID); err != nil { // before it takes the place of another
		return Package{}, err
	}
	if err := publish(f.work, filepath.Join(f.store, f.entry.ID)); err != nil {
		return Package{}, err
	}
	return Open(f.store, f.entry.ID)
}

// get gives one file of the model: the one that is there already, or a fetched one.
func (f *fetcher) get(ctx context.Context, w wanted) (File, error) {
	w.shown = f.from.shown(w.url)
	path := filepath.Join(f.work, w.name)
	file, err := f.found(ctx, w, path)
	if err == nil {
		f.meter.add(file.Bytes, false)
		f.meter.finished()
		return file, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return File{}, diskFault(err, f.store)
	}
	if file, err = f.download(ctx, w, path); err != nil {
		return File{}, f.reported(ctx, w, err)
	}
	f.meter.finished()
	return file, nil
}

// found gives a file that is there already, if it is the right one; one that isn't is removed.
func (f *fetcher) found(ctx context.Context, w wanted, path string) (File, error) {
	s, err := sumFile(ctx, path)
	if err != nil {
		return File{}, err
	}
	if err := w.verify(s, path); err != nil {
		return File{}, cmp.Or(os.Remove(path), error(fs.ErrNotExist))
	}
	return s.file(w), nil
}
