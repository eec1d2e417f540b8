package fit

import (
	"context"
	"strings"

	"llmparity/browser/webllm"
	"llmparity/internal/estimate"
	"llmparity/internal/fault"
	"llmparity/internal/gguf"
	"llmparity/internal/model"
	"llmparity/internal/modelsize"
	"llmparity/internal/resolve"
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
	if model.Listed(name) && !file {
		m, window, err := model.Finder{Catalogue: q.Catalogue, Mirror: q.Mirror}.Estimated(ctx, name)
		if s := &q.Setup; s.Context == 0 && s.InputLen+s.OutputLen == 0 {
			s.Context = min(window, resolve.MaxUnasked)
		}
		return m, err
	}
	if q.Mirror != "" {
		return estimate.Model{}, model.NotMirrored(name)
	}
	if strings.HasPrefix(name, model.Served) {
		return estimate.Model{}, fault.New(fault.Usage, "name a file, or give the sizes by flags",
			"%s is on a server: its sizes are unknown", name)
	}
	var err error
	if q.path, err = model.Path(name); err != nil {
		return estimate.Model{}, err
	}
	return modelsize.Open(q.path)
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
