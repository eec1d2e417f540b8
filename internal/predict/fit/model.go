package fit

import (
	"context"
	"slices"
	"strings"

	"llmparity/internal/bench/resolve"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models"
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
	if models.Listed(name) {
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
	return models.Sizes(q.path)
}

// published returns the model that a package was made from, for engines that do not run packages.
func (q *Question) published(m, of estimate.Model) estimate.Model {
	e, err := estimate.Choose(q.Engines, q.Engine, m, q.Setup)
	if err != nil {
		return m
	}
	var only []string // those that load the package
	for _, other := range q.Engines {
		if slices.Contains(other.Formats, m.Only) {
			only = append(only, other.Title)
		}
	}
	return q.Setup.Published(e, m, of, strings.Join(only, " and "))
}
