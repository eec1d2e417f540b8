package reproduce

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"llmparity/compare/explain"
	"llmparity/internal/bench/plan"
	"llmparity/internal/engine"
	"llmparity/internal/host/cache"
	"llmparity/internal/models"
	"llmparity/internal/record"
	"llmparity/internal/record/differ"
)

// notHere stands for a part that was not found.
const notHere = "not found"

// ranEngine is an engine that ran, with what it reported in the first counted launch of each setup.
type ranEngine struct {
	record.EngineInfo
	setups []setupInfo
}

type setupInfo struct {
	setup int
	info  *record.EngineInfo
}

// enginesOf are the engines that ran, by name, version, hash and parts.
func enginesOf(was *record.Run) []ranEngine {
	setups := map[int]int{} // of cells
	for _, c := range was.Cells {
		setups[c.ID] = c.Setup
	}
	var out []ranEngine
	at, reported := map[string]int{}, map[[2]int]bool{}
	for _, a := range was.Attempts {
		var last *record.EngineInfo
		for _, e := range a.Events {
			if e.Engine != nil {
				last = e.Engine
			}
		}
		if last == nil || !a.Counted() {
			continue
		}
		key := strings.Join(append([]string{last.Name, last.Version, last.SHA256}, partsOf(last)...), "\x00")
		i, seen := at[key]
		if !seen {
			i = len(out)
			at[key], out = i, append(out, ranEngine{EngineInfo: *last})
		}
		if setup := setups[a.Cell]; !reported[[2]int{i, setup}] {
			reported[[2]int{i, setup}] = true
			out[i].setups = append(out[i].setups, setupInfo{setup, last})
		}
	}
	return out
}

// policyOf is what an engine reported of its settings, and how it converted the weights.
func policyOf(info *record.EngineInfo) map[string]string {
	out := map[string]string{}
	maps.Copy(out, info.Policy)
	if info.Weights != "" {
		out["weights"] = info.Weights.String()
	}
	return out
}

// policies are an engine's settings, each with its values in all setups.
func (e *ranEngine) policies() (out [][2]string) {
	names := map[string]string{}
	for _, s := range e.setups {
		maps.Copy(names, policyOf(s.info))
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		var values []string
		for _, s := range e.setups {
			values = explain.AppendNew(values, cmp.Or(policyOf(s.info)[name], "not reported"))
		}
		out = append(out, [2]string{name, strings.Join(values, " or ")})
	}
	return out
}

// mostArguments is the maximum number of setups whose arguments are listed. The record has all.
const mostArguments = 16

// arguments are an engine's, setup by setup where there are several.
func (e *ranEngine) arguments() (out []string) {
	for i, s := range e.setups {
		switch text := strings.Join(s.info.Args, " "); {
		case text == "":
		case len(e.setups) == 1:
			out = append(out, "arguments: "+text)
		case len(out) == mostArguments:
			return append(out, fmt.Sprintf("the record has the arguments of %d more setups", len(e.setups)-i))
		default:
			out = append(out, fmt.Sprintf("arguments in setup %d: %s", s.setup, text))
		}
	}
	return out
}

func partsOf(info *record.EngineInfo) (out []string) {
	parts := info.Identity()
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		out = append(out, name+"="+parts[name])
	}
	return out
}

// modelsOf are the models of all cells.
func modelsOf(was *record.Run) []record.Model {
	var out []record.Model
	for _, c := range was.Cells {
		same := func(m record.Model) bool { return m.SHA256 == c.Model.SHA256 && m.Name == c.Model.Name }
		if c.Model.Name != "" && !slices.ContainsFunc(out, same) {
			out = append(out, c.Model)
		}
	}
	return out
}

// program compares this program with the ones that wrote the record.
func (r *Reproduction) program(was *record.Run, is record.Tool) {
	wrote := []record.Tool{was.Meta.Tool}
	for _, resumed := range was.Resumes {
		wrote = append(wrote, resumed.Tool)
	}
	for _, t := range wrote {
		r.add("", differ.Tools(t, is))
	}
}

// engines compares the engines that ran with those here.
func (r *Reproduction) engines(ctx context.Context, here Here, was *record.Run) {
	all := enginesOf(was)
	if len(all) == 0 {
		r.unknown("engines: none ran")
	}
	for _, ran := range all {
		info := ran.EngineInfo
		k, _ := here.Kinds.Of(info.Name)
		var config engine.Config
		if k != nil {
			config = here.Choice.Config(k)
		}
		if k != nil && k.Compare != nil {
			k.Compare(ctx, info, config, here.Choice.Settings, engine.Comparison{Unknown: r.unknown,
				Differ: func(part, was, is string) {
					r.differ(info.Name+"'s "+differ.Part(info.Name, part), was, cmp.Or(is, notHere), true)
				}})
			continue
		}
		path, err := info.Path, error(nil)
		if k != nil && k.Program != nil {
			if path, err = k.Program(config, here.Choice.Settings); err == nil && path == "" {
				r.unknown("%s: version of the running server", info.Name)
				continue
			}
		} else if info.SHA256 == "" || path == "" {
			r.unknown("%s: reports its version only while it runs", info.Name)
			continue
		}
		r.binary(k, info, path, err)
	}
}

// binary compares a program by its hash.
func (r *Reproduction) binary(k *engine.Kind, was record.EngineInfo, path string, err error) {
	is := notHere
	if err == nil {
		if sum, err := cache.HashFile(path); err == nil {
			is = sum
		}
	}
	what := was.Name + "'s program"
	if was.SHA256 == "" {
		r.unknown("%s: its hash was not recorded", was.Name)
		return
	}
	r.differ(what, was.SHA256, is, true)
	if sum := was.Parts["libraries_sha256"]; sum != "" && is != notHere && k != nil && k.Libraries != nil {
		part := was.Name + "'s " + differ.Part(was.Name, "libraries_sha256")
		r.differ(part, sum, cmp.Or(k.Libraries(path), notHere), true)
	}
	if is == was.SHA256 && was.Path != path {
		r.differ(was.Name+"'s path", was.Path, path, false)
	}
}

// models compares the plan's models with the measured ones.
func (r *Reproduction) models(ctx context.Context, was *record.Run, p plan.Plan) {
	m, err := p.Expand()
	if err != nil {
		r.unknown("models: %v", err)
		return
	}
	measured := map[int]record.Model{} // by setup
	for _, c := range was.Cells {
		if c.Model.Name != "" {
			measured[c.Setup] = c.Model
		}
	}
	looked := map[string]bool{}
	for _, s := range m.Setups {
		model, ok := measured[s.ID]
		if key := s.Plan.Model + "\x00" + model.SHA256; ok && !looked[key] {
			looked[key] = true
			r.model(ctx, s.Plan.Model, model)
		}
	}
}

func (r *Reproduction) model(ctx context.Context, name string, was record.Model) {
	if was.Format == record.Served {
		r.unknown("model %s: only its server has it, so its weights cannot be verified", was.Name)
		return
	}
	is, err := models.SHA256(ctx, name)
	if err != nil {
		is = notHere
	}
	r.differ(fmt.Sprintf("model %s, sha256", cmp.Or(name, was.Name)), was.SHA256, is, true)
}
