package fit

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"llmparity/browser/webllm"
	"llmparity/internal/bench/resolve"
	"llmparity/internal/dtype"
	"llmparity/internal/engine"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models"
	"llmparity/internal/models/gguf"
	"llmparity/internal/models/modelsize"
	"llmparity/internal/predict/estimate"
)

// model finds the model: by a name as in run --model, by a file or folder, or by sizes.
func (q *Question) model(ctx context.Context, name string) (estimate.Model, error) {
	switch {
	case name != "" && q.Numbers.Any():
		return estimate.Model{}, fault.New(fault.Usage, "omit one of them",
			"both a model (%s) and sizes are given", name)
	case name != "":
		return q.named(ctx, name)
	case !q.Numbers.Any():
		return estimate.Model{}, fault.New(fault.Usage,
			"name a model, or give --model-params, --num-layers, --num-heads, --hidden-size and --head-dim",
			"no model is given")
	}
	return modelsize.FromNumbers(q.Numbers)
}

func (q *Question) named(ctx context.Context, name string) (estimate.Model, error) {
	file := strings.HasSuffix(name, ".json") || strings.HasSuffix(name, ".safetensors")
	if models.Listed(name) && !file {
		finder := models.Finder{Catalogue: q.Catalogue, Mirror: q.Mirror}
		m, window, err := finder.Estimated(ctx, name)
		if of, ok := finder.Published(name); err == nil && ok {
			m = q.published(m, of)
		}
		if s := &q.Setup; s.Context == 0 && s.InputLen+s.OutputLen == 0 {
			s.Context = min(window, resolve.MaxUnasked)
		}
		return m, err
	}
	if q.Mirror != "" {
		return estimate.Model{}, models.NotMirrored(name)
	}
	if strings.HasPrefix(name, models.Served) {
		return estimate.Model{}, fault.New(fault.Usage, "name a file, or give the sizes by flags",
			"%s is on a server: its sizes are unknown", name)
	}
	var err error
	if q.path, err = models.Path(name); err != nil {
		return estimate.Model{}, err
	}
	return modelsize.Open(q.path)
}

// published returns the model that a package was made from, for engines that do not run packages.
func (q *Question) published(m, of estimate.Model) estimate.Model {
	s := &q.Setup
	e, err := estimate.Choose(q.Engines, q.Engine, m, *s)
	if err != nil || e.Runtime == engine.MLC {
		return m
	}
	note := fmt.Sprintf("predicted for the published %s weights, because the package is for WebLLM only", of.DType)
	if e.Runtime == engine.GGML {
		packed, _ := dtype.PackedAs(m.DType)
		s.Quantization = cmp.Or(s.Quantization, packed.GGUF())
		note = fmt.Sprintf("predicted for a GGUF file in %s, because the package (%s) is for WebLLM only; for another type, "+
			"use --quantization", s.Quantization, m.DType)
	}
	of.Notes = append([]string{note}, of.Notes...)
	return of
}

// unrunnable returns why WebLLM cannot run a GGUF of any size, such as an architecture that cannot be converted. It
// returns "" if the file is not a complete GGUF.
func unrunnable(path string, context int) string {
	f, err := gguf.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	if err := webllm.Converts(f, context); err != nil {
		return "WebLLM: " + fault.OneLine(err.Error())
	}
	return ""
}
