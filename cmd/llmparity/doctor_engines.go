package main

import (
	"slices"
	"strings"

	"llmparity/assets/plans"
	"llmparity/browser"
	"llmparity/compare"
	"llmparity/internal/plan"
	"llmparity/internal/record"
	"llmparity/native/llamacpp"
	"llmparity/native/ollama"
	"llmparity/native/openai"
	"llmparity/native/protocol"
)

// engineFound is an engine, and what it could run here.
type engineFound struct {
	Name     string   `json:"name"` // as in plans
	Ready    bool     `json:"ready"`
	Version  string   `json:"version,omitempty"`
	Path     string   `json:"path,omitempty"`
	Device   string   `json:"device,omitempty"` // what it would compute on unless told otherwise
	F16      *bool    `json:"f16,omitempty"`    // whether it computes in float16 here; absent: not known
	Backends []string `json:"gpu_backends,omitempty"`
	Can      string   `json:"can"`
}

// enginesFound tells of each engine by the parts that it needs.
func (f *doctorFlags) enginesFound(d *diagnosis) []engineFound {
	by := map[string]part{}
	for _, p := range d.Parts {
		by[p.Name] = p
	}
	out := []engineFound{webllmFound(by, d.WebGPU, f.quick)}
	for _, n := range []struct{ engine, part string }{{llamacpp.Name, llamaServerPart},
		{llamacpp.OneShotName, oneShotPart}, {ollama.Name, ollamaPart}} {
		e := nativeFound(by[n.part], d.GPUs)
		e.Name = n.engine
		out = append(out, e)
	}
	server := engineFound{Name: openai.Name, Can: "whatever a server runs that is named with --openai-url"}
	if p, ok := by["OpenAI server"]; ok {
		server = engineFound{Name: openai.Name, Ready: true, Path: p.Path, Can: p.Detail}
	}
	return append(out, server, engineFound{Name: protocol.Prefix + "PATH",
		Can: "whatever a program of your own runs (docs/protocol.md)"})
}

func webllmFound(by map[string]part, gpu *webgpu, quick bool) engineFound {
	bundle, haveBundle := by[bundlePart]
	chrome, haveChrome := by[browserPart]
	e := engineFound{Name: browser.Name, Version: bundle.Version, Path: chrome.Path}
	switch {
	case !haveBundle || !haveChrome:
		e.Can = "nothing: see what is missing"
	case quick:
		e.Ready, e.Can = true, "as the WebGPU adapter can, which --quick does not ask"
	case gpu == nil:
		e.Can = "nothing: there is no WebGPU adapter"
	default:
		e.Ready, e.Device, e.F16 = true, string(gpu.Class), &gpu.F16
		e.Can = "models with float32 weights alone (q0f32, q4f32_1 …): the adapter has no shader-f16"
		if gpu.F16 {
			e.Can = "models with float16 and with float32 weights"
		}
		if gpu.Class == record.SoftwareAdapter {
			e.Can += "; WebGPU is computed on the processor, which is slow and no browser against native"
		}
	}
	return e
}

func nativeFound(p part, gpus []gpuFound) engineFound {
	if p.Path == "" {
		return engineFound{Can: "nothing: it is not here"}
	}
	yes := true // ggml's types have float16 on every processor
	e := engineFound{Ready: true, Version: p.Version, Path: p.Path, Device: string(record.CPU), F16: &yes,
		Backends: p.backends}
	switch reach := reached(p.backends, gpus); {
	case len(p.backends) == 0:
		e.Can = "GGUF files on the processor: it was not built for a GPU, as far as its libraries show"
	case reach == "":
		e.Can = "GGUF files on the processor: it was built for " + strings.Join(p.backends, ", ") +
			", and there is no such GPU"
	default:
		e.Can = "GGUF files on the processor, and on " + reach + " where it is asked for"
	}
	return e
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
func promised(e record.Environment) []compare.Check {
	p, err := plan.Parse(plans.Default, "the built-in plan")
	if err != nil {
		panic(err) // a test parses it
	}
	yes := func(is bool) compare.Answer {
		if is {
			return compare.Yes
		}
		return compare.No
	}
	return []compare.Check{
		{Item: compare.SameModel, Answer: compare.Yes,
			Why: "every engine is given the same file, told by its SHA-256; where one holds its weights in other numbers a warning says so"},
		{Item: compare.SamePrompt, Answer: compare.Yes, Why: "every engine is given every prompt of the plan, raw"},
		{Item: compare.SameMaxTokens, Answer: yes(p.MaxTokens > 0),
			Why: "max_tokens of the plan holds for all engines, which go on behind an end of text where they can"},
		{Item: compare.Deterministic, Answer: yes(p.Temperature == 0),
			Why: "temperature of the plan is 0, which is greedy"},
		compare.Quiet(e),
		{Item: compare.SeveralRuns, Answer: yes(p.Repetitions >= compare.Enough),
			Why: "repetitions of the plan: as many launches of each engine as a 95 % interval takes, after a warm-up launch"},
		{Item: compare.SystemState, Answer: yes(e.OS != "" && e.Kernel != ""),
			Why: "environment.json has the machine, the journal each engine's version, path, hash and arguments"},
	}
}
