package gates

import (
	"reflect"
	"strings"

	"github.com/goccy/go-yaml"

	"llmparity/internal/figure"
)

// ChangeText is a Change in YAML.
type ChangeText struct {
	Change string `yaml:"change"`
	Detect string `yaml:"detect,omitempty"`
	Scope  Scope  `yaml:",inline"`
	Level  Level  `yaml:"level,omitempty"`
}

// MarshalYAML writes the section in the form that package gatefile reads.
func (g Gate) MarshalYAML() (any, error) {
	out := yaml.MapSlice{}
	put := func(name string, value any) {
		if !reflect.ValueOf(value).IsZero() {
			out = append(out, yaml.MapItem{Key: name, Value: value})
		}
	}
	put("level", g.Level)
	put("failed", g.Failed)
	put("gone", g.Gone)
	put("inconclusive", g.Inconclusive)
	put("no_baseline", g.NoBaseline)
	put("under_test", strings.Join(g.UnderTest, ","))
	put("detect", shareOrNone(g.Detect))
	put("baseline", g.Baseline)
	var limits, changes yaml.MapSlice
	for _, l := range g.Limits {
		byFigure(&limits, l.Figure, l)
	}
	for _, c := range g.Changes {
		byFigure(&changes, c.Figure, ChangeText{signed(c.Change), shareOrNone(c.Detect), c.Scope, c.Level})
	}
	out = append(out, limits...)
	put("vs_baseline", changes)
	put("parity", g.Parity)
	put("scores", g.Scores)
	return out, nil
}

// byFigure keeps checks of one figure under one name.
func byFigure(all *yaml.MapSlice, f *figure.Row, check any) {
	for i, item := range *all {
		if item.Key == f.Asked() {
			(*all)[i].Value = append(item.Value.([]any), check)
			return
		}
	}
	*all = append(*all, yaml.MapItem{Key: f.Asked(), Value: []any{check}})
}

func shareOrNone(v float64) string {
	if v == 0 {
		return ""
	}
	return share(v)
}

// MarshalYAML writes a single value without a list.
func (s Scope) MarshalYAML() (any, error) {
	out := map[string]any{}
	for name, values := range s {
		if out[name] = values; len(values) == 1 {
			out[name] = values[0]
		}
	}
	return out, nil
}
