package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"

	"llmparity/internal/cache"
	"llmparity/internal/catalogue"
	"llmparity/internal/estimate"
	"llmparity/internal/fault"
	"llmparity/internal/gguf"
	"llmparity/internal/mlc"
	"llmparity/internal/record"
)

// model finds what is to be estimated: by a name that --model of a run takes, by a file or folder, or by numbers.
func (f *estimateFlags) model(ctx context.Context, args []string) (estimate.Model, error) {
	switch {
	case len(args) > 0 && f.numbers.Any():
		return estimate.Model{}, fault.New(fault.Usage, "leave one of them out",
			"a model and its sizes by flags were given: %s", args[0])
	case len(args) > 0:
		return f.named(ctx, args[0])
	case !f.numbers.Any():
		return estimate.Model{}, fault.New(fault.Usage,
			"name a model, or give --model-params, --num-layers, --num-heads, --hidden-size and --head-dim",
			"nothing to estimate was given")
	}
	return estimate.FromNumbers(f.numbers)
}

func (f *estimateFlags) named(ctx context.Context, name string) (estimate.Model, error) {
	file := strings.HasSuffix(name, ".json") || strings.HasSuffix(name, ".safetensors")
	if listedModel(name) && !file {
		m, window, err := catalogueModel(ctx, name, f.mirror)
		if s := &f.setup; s.Context == 0 && s.InputLen+s.OutputLen == 0 {
			s.Context = min(window, maxUnasked)
		}
		return m, err
	}
	if f.mirror != "" {
		return estimate.Model{}, notMirrored(name)
	}
	f.path = name
	switch {
	case strings.HasPrefix(name, servedPrefix):
		return estimate.Model{}, fault.New(fault.Usage, "name a file, or give its sizes by flags",
			"%s is on a server: no file tells its sizes", name)
	case name == "tiny":
		m, err := tinyModel(0)
		if err != nil {
			return estimate.Model{}, err
		}
		f.path = m.Path
	case name == "smollm2":
		path, err := smolLM2Path()
		if err != nil {
			return estimate.Model{}, err
		}
		f.path = path
	}
	return estimate.Open(f.path)
}

// catalogueModel is a model of WebLLM's catalogue by the best of what is at hand: its package in the store; its lists,
// from the mirror or of a download that was cut; what the catalogue states. Nothing is stored, and without a mirror no
// network is asked. The window is the context that a run gives it; 0: the package's own.
func catalogueModel(ctx context.Context, id, mirror string) (m estimate.Model, window int, err error) {
	e, err := chatEntry(id)
	if err != nil {
		return m, 0, err
	}
	m, from, err := packageLists(ctx, e, mirror)
	if errors.Is(err, fs.ErrNotExist) {
		from, err = "what WebLLM's catalogue states: the package is not here (--mirror says where its sizes are)", nil
		m = estimate.FromStatement(e.ID, estimate.Stated{By: "WebLLM's catalogue", Bytes: int64(e.VRAM * record.MiB),
			Context: max(e.Context(), 0), Buffer: e.Buffer, F16: e.Needs(catalogue.ShaderF16)})
	}
	if err != nil {
		return m, 0, err
	}
	notes := []string{"its figures come from " + from}
	if e.LowEnd {
		notes = append(notes, "WebLLM counts it among the models for devices with little memory")
	}
	m.Notes = append(notes, m.Notes...)
	return m, max(e.Context(), 0), nil
}

// packageLists reads what a package says of itself; fs.ErrNotExist where it is not at hand.
func packageLists(ctx context.Context, e catalogue.Entry, mirror string) (m estimate.Model, from string, err error) {
	store := catalogue.Store(cache.Dir(os.Getenv))
	if mirror != "" {
		l, err := catalogue.Published(ctx, e, catalogue.Options{Mirror: mirror})
		if err != nil {
			return m, "", err
		}
		m, err = estimate.FromLists(e.ID, l.Config, l.Weights)
		return m, "the package's lists at " + mirror, err
	}
	if p, err := catalogue.Open(store, e.ID); err == nil {
		m, err = estimate.Open(p.Dir)
		return m, "the package in the store", err
	}
	l, err := catalogue.Kept(store, e.ID)
	if err != nil {
		return m, "", err
	}
	m, err = estimate.FromLists(e.ID, l.Config, l.Weights)
	return m, "the package's lists in the store", err
}

// unrunnable says why WebLLM does not run a GGUF, whatever its size is: of an architecture or a tokenizer that cannot
// be converted. Of what is not a whole GGUF file nothing is said.
func unrunnable(path string, context int) string {
	f, err := gguf.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	var flags packageFlags
	if _, err = mlc.Shape(f, flags.options(context)); err == nil {
		_, err = f.Vocabulary()
	}
	if err == nil {
		err = f.RequireReadable()
	}
	if err != nil {
		return "WebLLM does not run it: " + fault.OneLine(err.Error())
	}
	return ""
}
