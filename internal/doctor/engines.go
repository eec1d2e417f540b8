package doctor

import (
	"context"
	"os/exec"
	"slices"
	"strings"

	"llmparity/assets/charts"
	"llmparity/assets/plans"
	"llmparity/compare/explain"
	"llmparity/internal/engine"
	"llmparity/internal/fault"
	"llmparity/internal/plan"
	"llmparity/internal/record"
)

// searches are in the order in which what is missing counts.
func (o Options) searches() []engine.Search {
	var out []engine.Search
	for _, k := range o.Kinds {
		if k.Parts == nil {
			continue
		}
		for _, s := range k.Parts(o.Choice.Config(k), o.Choice.Settings) {
			if !o.Quick || !s.Starts {
				out = append(out, s)
			}
		}
	}
	return append(out, engine.Search{Name: "echarts", Find: func(context.Context) engine.Part {
		_, _, err := charts.Libraries()
		return engine.Part{Detail: "inlined in reports", Err: err}
	}}, engine.Search{Name: "cache", Find: func(context.Context) engine.Part { return engine.Part{Path: o.Cache} }},
		spare("node", "npm fetches what pages and reports need for make setup", "--version"),
		spare("go", "builds llmparity and engines", "version"))
}

// spare looks for a program that is not needed once llmparity is set up.
func spare(name, use string, question string) engine.Search {
	return engine.Search{Name: name, Find: func(ctx context.Context) engine.Part {
		path, err := exec.LookPath(name)
		if err != nil {
			return engine.Part{Absent: true, Detail: "not on PATH; " + use}
		}
		p := engine.Version(ctx, fault.Run, path, question)
		if p.Err != nil {
			return engine.Part{Absent: true, Path: path, Detail: "says nothing; " + use}
		}
		return p
	}}
}

// engines tells of each engine by the parts that it needs.
func (o Options) engines(d *Diagnosis) []engine.Finding {
	here := engine.Here{Parts: map[string]engine.Part{}, Quick: o.Quick,
		GPU: func(backends []string) string { return reached(backends, d.GPUs) }}
	for _, p := range d.Parts {
		here.Parts[p.Name] = p
	}
	var out []engine.Finding
	for _, k := range o.Kinds {
		if k.Found != nil {
			out = append(out, k.Found(here))
		}
	}
	return out
}

// reached is a GPU that one of the backends is for.
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

// promised answers the checklist of a reproducible run for one of the built-in plan that would begin now.
func promised(e record.Environment, kinds engine.Kinds) []explain.Check {
	p, err := plan.Parse(plans.Default, "the built-in plan", kinds...)
	if err != nil {
		panic(err) // a test parses it
	}
	yes := func(is bool) explain.Answer {
		if is {
			return explain.Yes
		}
		return explain.No
	}
	return []explain.Check{
		{Item: explain.SameModel, Answer: explain.Yes,
			Why: "every engine is given the same file, told by its SHA-256; where one holds its weights in other numbers a warning says so"},
		{Item: explain.SamePrompt, Answer: explain.Yes, Why: "every engine is given every prompt of the plan, raw"},
		{Item: explain.SameMaxTokens, Answer: yes(p.MaxTokens > 0),
			Why: "max_tokens of the plan holds for all engines, which go on behind an end of text where they can"},
		{Item: explain.Deterministic, Answer: yes(p.Temperature == 0),
			Why: "temperature of the plan is 0, which is greedy"},
		explain.Quiet(e),
		{Item: explain.SeveralRuns, Answer: yes(p.Repetitions >= explain.Enough),
			Why: "repetitions of the plan: as many launches of each engine as a 95 % interval takes, after a warm-up launch"},
		{Item: explain.SystemState, Answer: yes(e.OS != "" && e.Kernel != ""),
			Why: "environment.json has the machine, the journal each engine's version, path, hash and arguments"},
	}
}
