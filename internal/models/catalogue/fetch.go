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
	"time"

	"llmparity/internal/host/cache"
	"llmparity/internal/kit/fault"
	"llmparity/internal/kit/whole"
	"llmparity/internal/kit/workers"
	"llmparity/internal/models/mlc"
)

// FetchOptions say where a model is fetched from and to.
type FetchOptions struct {
	Store  string // see Store
	Mirror string // URL or folder that has the paths of the public URLs; "": the public URLs
	// Features are those of the WebGPU adapter that will run the model; nil: unknown.
	Features []string
	// Transport is for requests to URLs; nil: the default. Redirections are checked above it.
	Transport http.RoundTripper

	patience patience
}

// atOnce is the number of shards to download at a time.
const atOnce = 4

// interval is the shortest time between two lines of progress.
const interval = 2 * time.Second

// Check returns an error if the adapter lacks a feature that the model needs. Nil features are unknown.
func (e Entry) Check(features []string) error {
	if features == nil {
		return nil
	}
	lacks := func(kind fault.Kind, feature, do string) error {
		return fault.New(kind, do, "model %s needs %s, which the WebGPU adapter does not have", e.ID, feature)
	}
	if e.Needs(ShaderF16) && !slices.Contains(features, ShaderF16) {
		return lacks(fault.NoF16, ShaderF16,
			"choose a model without it (q0f32 or q4f32 in llmparity model list), or use a GPU that has it")
	}
	for _, feature := range e.Features {
		if !slices.Contains(features, feature) {
			return lacks(fault.NoAdapter, feature, "choose another model, or use a GPU that has it")
		}
	}
	return nil
}

// Fetch returns a model from the store, after downloading what is missing. say, which may be nil, gets lines of
// progress. With a mirror, only a stored model from that mirror is used; shards with the right MD5 are reused in any
// case.
func Fetch(ctx context.Context, e Entry, o FetchOptions, say func(string)) (Package, error) {
	if err := e.Check(o.Features); err != nil {
		return Package{}, err
	}
	from, err := openSource(o.Mirror, o.Transport)
	if err != nil {
		return Package{}, err
	}
	defer from.close()
	if p, ok := stored(e, o, from); ok {
		// no list of MLC has the hashes of other files than shards
		small := slices.DeleteFunc(slices.Clone(p.Files), func(f File) bool { return isShard(f.Name) })
		return p, p.verify(ctx, small)
	}
	if err := cache.MkdirAll(o.Store); err != nil {
		return Package{}, err
	}
	m := &meter{id: e.ID, say: say, interval: interval}
	unlock, err := whole.Lock(ctx, filepath.Join(o.Store, ".lock-"+e.ID),
		func() { m.note("waiting for another download of it") })
	if err != nil {
		return Package{}, diskFault(err, o.Store)
	}
	defer unlock()
	if p, ok := stored(e, o, from); ok { // by the process that held the lock
		return p, nil
	}
	f := &fetcher{downloader: downloader{from.client, o.patience, m}, entry: e, from: from, store: o.Store,
		work: filepath.Join(o.Store, ".fetching-"+e.ID)}
	p, err := f.run(ctx)
	if err != nil && ctx.Err() != nil {
		return Package{}, fmt.Errorf("fetching %s: %w", e.ID, context.Cause(ctx))
	}
	return p, err
}

// stored returns the model if the store has it, with the library that the entry names.
func stored(e Entry, o FetchOptions, from *source) (Package, bool) {
	p, err := Open(o.Store, e.ID)
	if err != nil || p.Entry.Model != e.Model || p.Entry.Library != e.Library {
		return Package{}, false
	}
	p.Entry = e
	return p, from.mirror == nil || p.Source == from.name
}

// fetcher fetches one model into a work folder, under a lock.
type fetcher struct {
	downloader
	entry Entry
	from  *source
	store string
	work  string // the folder of the incomplete model
}

func (f *fetcher) run(ctx context.Context) (Package, error) {
	// Shards of an interrupted fetch are kept, because their MD5 is known. The other files may be of another version.
	keep := func(name string) bool { return isShard(strings.TrimSuffix(name, partial)) }
	if err := cmp.Or(os.MkdirAll(f.work, 0o755), sweep(f.work, keep)); err != nil {
		return Package{}, diskFault(err, f.store)
	}
	files, shards, err := f.others(ctx)
	if err != nil {
		return Package{}, err
	}
	weights, err := f.shards(ctx, shards)
	if err != nil {
		return Package{}, err
	}
	p, err := f.finish(append(files, weights...))
	return p, diskFault(err, f.store)
}

const (
	maxText    = 256 << 20 // of a list or a tokenizer: the largest have 40 MB
	maxLibrary = 512 << 20
)

// others fetches all files but the shards.
func (f *fetcher) others(ctx context.Context) (files []File, shards []mlc.Shard, err error) {
	get := func(name string, check func([]byte) error) error {
		file, err := f.get(ctx, wanted{name: name, url: f.from.file(f.entry, name), size: -1, most: maxText,
			check: check})
		if err == nil {
			files = append(files, file)
		}
		return err
	}
	var tokenizer string
	if err := get(ConfigName, func(text []byte) (err error) {
		tokenizer, err = tokenizerOf(text)
		return err
	}); err != nil {
		return nil, nil, err
	}
	list := func(text []byte) (err error) { shards, err = mlc.ParseShards(text); return err }
	if err := eitherList(func(name string) error { return get(name, list) }); err != nil {
		return nil, nil, err
	}
	if err := get(tokenizer, func(text []byte) error {
		if strings.HasSuffix(tokenizer, ".json") && !json.Valid(text) {
			return errors.New("it is not JSON")
		}
		return nil
	}); err != nil {
		return nil, nil, err
	}
	library, err := f.get(ctx, wanted{name: LibraryName, url: f.from.at(parse(f.entry.Library)), size: -1,
		most: maxLibrary, check: mlc.CheckModule})
	return append(files, library), shards, err
}

// shards fetches the weights, some shards at a time. It stops at the first error.
func (f *fetcher) shards(ctx context.Context, shards []mlc.Shard) ([]File, error) {
	f.meter.expect(bytesOf(shards), len(shards))
	for _, s := range shards { // a stored package of this id may have it; its content is checked like any other
		_ = os.Link(filepath.Join(f.store, f.entry.ID, s.File), filepath.Join(f.work, s.File)) // or it is downloaded
	}
	if err := f.room(shards); err != nil {
		return nil, err
	}
	files := make([]File, len(shards))
	err := workers.Each(ctx, atOnce, len(shards), func(ctx context.Context, i int) (err error) {
		s := shards[i]
		files[i], err = f.get(ctx, wanted{name: s.File, url: f.from.file(f.entry, s.File), size: s.Bytes, md5: s.MD5,
			most: s.Bytes})
		return err
	})
	return files, err
}

// room checks that the disk has space for the missing shards.
func (f *fetcher) room(shards []mlc.Shard) error {
	missing := bytesOf(shards)
	for _, s := range shards {
		for _, name := range []string{s.File, s.File + partial} {
			if info, err := os.Stat(filepath.Join(f.work, name)); err == nil {
				missing -= min(info.Size(), s.Bytes)
				break
			}
		}
	}
	return cache.MakeRoom(filepath.Dir(filepath.Dir(f.store)), missing, f.meter.note)
}

// finish writes the manifest and moves the model to its place.
func (f *fetcher) finish(files []File) (Package, error) {
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	if err := sweep(f.work, func(name string) bool {
		return slices.ContainsFunc(files, func(f File) bool { return f.Name == name })
	}); err != nil {
		return Package{}, err
	}
	p := Package{Schema: manifestSchema, Entry: f.entry, Source: f.from.name,
		Fetched: time.Now().UTC().Truncate(time.Second), Files: files}
	if err := whole.JSON(filepath.Join(f.work, manifestName), p); err != nil {
		return Package{}, err
	}
	if err := whole.Replace(f.work, filepath.Join(f.store, f.entry.ID)); err != nil {
		return Package{}, err
	}
	return Open(f.store, f.entry.ID)
}

// get returns a file of the model from the work folder, after downloading it if necessary.
func (f *fetcher) get(ctx context.Context, w wanted) (File, error) {
	path := filepath.Join(f.work, w.name)
	sums, err := f.found(ctx, w, path)
	if errors.Is(err, fs.ErrNotExist) {
		sums, err = f.download(ctx, w, path)
	}
	shown := f.from.shown(w.url)
	switch {
	case ctx.Err() != nil:
		return File{}, context.Cause(ctx)
	case errors.As(err, new(*errDisk)):
		return File{}, diskFault(errors.Unwrap(err), f.store)
	case err != nil:
		return File{}, fault.Wrap(fault.Download, err, f.advice(err), "model %s: cannot download %s from %s",
			f.entry.ID, w.name, shown)
	}
	f.meter.finished()
	return File{Name: w.name, From: shown, Bytes: sums.size, SHA256: hexSum(sums.sh)}, nil
}

// found reads a complete file in the work folder. It removes a file with another content.
func (f *fetcher) found(ctx context.Context, w wanted, path string) (sums, error) {
	s := newSums()
	file, err := os.Open(path)
	if err != nil {
		return s, disk(err)
	}
	defer file.Close()
	if err := s.read(ctx, file); err != nil {
		return s, disk(err)
	}
	if w.wrong(s, file) != nil {
		return s, disk(cmp.Or(os.Remove(path), error(fs.ErrNotExist)))
	}
	f.meter.add(s.size, false)
	return s, nil
}

// download downloads a file to path.
func (f *fetcher) download(ctx context.Context, w wanted, path string) (sums, error) {
	file, err := os.OpenFile(path+partial, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return sums{}, disk(err)
	}
	defer file.Close()
	p := &part{file: file, sums: newSums()}
	if err := p.read(ctx, file); err != nil {
		return p.sums, disk(err)
	}
	f.meter.add(p.size, false)
	if err := f.fill(ctx, w, p); err != nil {
		if isWrong(err) {
			err = cmp.Or(p.empty(), err)
		}
		return p.sums, err
	}
	return p.sums, disk(cmp.Or(file.Sync(), file.Close(), os.Rename(path+partial, path)))
}

// advice says what to do about a failed download.
func (f *fetcher) advice(err error) string {
	switch {
	case unreached(err):
		return "check the network and the address, or name another source with --mirror URL or --mirror FOLDER"
	case f.mayPass(err):
		return "try again later: the shards downloaded so far are kept"
	case f.from.mirror != nil:
		return "correct the mirror, or omit --mirror"
	}
	return "choose another model, or name a mirror that has it with --mirror"
}
