package main

import (
	"slices"
	"strings"

	"llmparity/assets/plans"
	"llmparity/compare/explain"
	"llmparity/internal/engine"
	"llmparity/internal/kinds"
	"llmparity/internal/plan"
	"llmparity/internal/record"
)

// enginesFound tells of each engine by the parts that it needs.
func (f *doctorFlags) enginesFound(d *diagnosis) []engine.Finding {
	here := engine.Here{Parts: map[string]engine.Part{}, Quick: f.quick,
		GPU: func(backends []string) string { return reached(backends, d.GPUs) }}
	for _, p := range d.Parts {
		here.Parts[p.Name] = p
	}
	var out []engine.Finding
	for _, k := range kinds.All {
		if k.Found != nil {
			out = append(out, k.Found(here))
		}
	}
	return out
}

// reached is a GPU that one of the backends is for.
func reached(backends []string, gpus []gpuFound) string {
	for _, g := range gpus {
		vendor := strings.ToLower(g.Vendor + " " + g.Driver)
		for backend, of := range map[string]string{"cuda": "nvidia", "hip": "amd"} {
			if slices.Contains(backends, backend) && strings.Contains(vendor, of) {
				return g.Role + " (" + g.Name + ")"
			}
		}
		if slices.Contains(backends, "vulkan") || slices.Contains(backends, "opencl") ||
			slices.Contains(backends, "sycl") {
			return g.Role + " (" + g.Name + ")"
		}
	}
	return ""
}

// promised answers the checklist of a reproducible run for one of the built-in plan that would begin now.
func promised(e record.Environment) []explain.Check {
	p, err := plan.Parse(plans.Default, "the built-in plan", kinds.All...)
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
