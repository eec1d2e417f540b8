package doctor

import (
	"context"
	"os/exec"
	"reflect"
	"slices"
	"strings"

	"llmparity/assets/charts"
	"llmparity/assets/plans"
	"llmparity/compare/explain"
	"llmparity/internal/bench/plan"
	"llmparity/internal/engine"
	"llmparity/internal/kit/fault"
	"llmparity/internal/record"
)

// searches returns the parts to look for; the first missing one decides the exit code.
func (o Options) searches() []engine.Search {
	var out []engine.Search
	for _, k := range o.Kinds {
		if k.Parts == nil {
			continue
		}
		config := o.Choice.Config(k)
		for _, s := range k.Parts(config, o.Choice.Settings) {
			switch {
			case o.Quick && s.Starts:
			case k.Default || k.Config != nil && !reflect.DeepEqual(config, k.Config()): // flags name the engine
				out = append(out, s)
			default:
				out = append(out, optional(s))
			}
		}
	}
	return append(out, engine.Search{Name: "echarts", Find: func(context.Context) engine.Part {
		_, _, err := charts.Libraries()
		return engine.Part{Detail: "charts in reports", Err: err}
	}}, engine.Search{Name: "cache", Find: func(context.Context) engine.Part { return engine.Part{Path: o.Cache} }},
		spare("node", "needed by make setup", "--version"),
		spare("go", "needed to build llmparity", "version"))
}

// optional looks for a part that the default run does not need.
func optional(s engine.Search) engine.Search {
	return engine.Search{Name: s.Name, Find: func(ctx context.Context) engine.Part {
		p := s.Find(ctx)
		if p.Err != nil {
			p = engine.Part{Absent: true, Detail: fault.OneLine(p.Err.Error())}
		}
		return p
	}}
}

// spare looks for a program that is not needed after the setup.
func spare(name, use string, question string) engine.Search {
	return engine.Search{Name: name, Find: func(ctx context.Context) engine.Part {
		path, err := exec.LookPath(name)
		if err != nil {
			return engine.Part{Absent: true, Detail: "not on PATH; " + use}
		}
		p := engine.Version(ctx, fault.Run, path, question)
		if p.Err != nil {
			return engine.Part{Absent: true, Path: path, Detail: "does not answer; " + use}
		}
		return p
	}}
}

// engines describes each engine by the parts that it needs.
func (o Options) engines(d *Diagnosis) []engine.Finding {
	here := engine.Here{Parts: map[string]engine.Part{}, Quick: o.Quick,
		GPU: func(backends []string) string { return reached(backends, d.GPUs) }}
	for _, p := range d.Parts {
		if !p.Absent {
			here.Parts[p.Name] = p
		}
	}
	var out []engine.Finding
	for _, k := range o.Kinds {
		if k.Found != nil {
			out = append(out, k.Found(here))
		}
	}
	return out
}

// reached returns a GPU that one of the backends can use.
func reached(backends []string, gpus []GPU) string {
	for _, g := range gpus {
		vendor := strings.ToLower(g.Vendor + " " + g.Driver)
		for backend, of := range map[string]string{"cuda": "nvidia", "hip": "amd"} {
			if slices.Contains(backends, backend) && strings.Contains(vendor, of) {
				return g.Role + " (" + g.Name + ")"
			}
		}
		if slices.ContainsFunc(backends, func(b string) bool { return b == "vulkan" || b == "opencl" || b == "sycl" }) {
			return g.Role + " (" + g.Name + ")"
		}
	}
	return ""
}

// promised answers the checklist of a reproducible run for a run of the default plan now.
func promised(e record.Environment, kinds engine.Kinds) []explain.Check {
	p, err := plan.Parse(plans.Default, "default plan", kinds...)
	if err != nil {
		panic(err) // a test parses it
	}
	return []explain.Check{
		{Item: explain.SameModel, Answer: explain.Yes,
			Why: "every engine gets the same file, identified by its SHA-256; a warning says if dtypes of weights differ"},
		{Item: explain.SamePrompt, Answer: explain.Yes, Why: "every engine gets the same prompts, without a template"},
		{Item: explain.SameMaxTokens, Answer: explain.YesIf(p.MaxTokens > 0),
			Why: "max_tokens applies to all engines, which continue after end of text if they can"},
		{Item: explain.Deterministic, Answer: explain.YesIf(p.Temperature == 0),
			Why: "temperature is 0 (greedy)"},
		explain.Quiet(e),
		{Item: explain.SeveralRuns, Answer: explain.YesIf(p.Repetitions >= explain.Enough),
			Why: "6 launches of each engine, enough for a 95% confidence interval, after a warm-up launch"},
		{Item: explain.SystemState, Answer: explain.YesIf(e.OS != "" && e.Kernel != ""),
			Why: "environment.json has the machine; the journal has each engine's version, path, hash and arguments"},
	}
}
