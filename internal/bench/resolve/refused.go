package resolve

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"llmparity/internal/bench/plan"
	"llmparity/internal/engine"
	"llmparity/internal/kit/fault"
	"llmparity/internal/kit/words"
)

// Reason is why some cells can't run, or may not.
type Reason struct {
	Answer  engine.Answer
	Engines []string // names in plans
	Err     error
	Cells   int
}

// Reasons returns the reasons of refused cells, in the order of the cells, and then those of unknown ones.
func (p *Resolved) Reasons() (out []*Reason) {
	type key struct {
		answer engine.Answer
		text   string
	}
	by := map[key]*Reason{}
	for i, a := range p.Answers {
		v, name := a.Verdict, p.Cells[i].Engine
		if v.Reason == nil {
			continue
		}
		of := key{v.Answer, v.Reason.Error()}
		why := by[of]
		if why == nil {
			why = &Reason{Answer: v.Answer, Err: v.Reason}
			by[of] = why
			out = append(out, why)
		}
		if !slices.Contains(why.Engines, name) {
			why.Engines = append(why.Engines, name)
		}
		why.Cells++
	}
	slices.SortStableFunc(out, func(a, b *Reason) int { return cmp.Compare(a.Answer, b.Answer) }) // refused, unknown
	return out
}

// Refused counts the cells that can't run here.
func (p *Resolved) Refused() (n int) {
	for _, a := range p.Answers {
		if a.Verdict.Answer == engine.Refused {
			n++
		}
	}
	return n
}

// Ends returns why nothing is to be launched: no cell can run here or, with strict, one can't.
func (p *Resolved) Ends(strict bool) error {
	n := p.Refused()
	if n == 0 || n < len(p.Cells) && !strict {
		return nil
	}
	return p.Reasons()[0].Err
}

// mostReasons limits the lines on a screen.
const mostReasons = 20

// Lines says which cells can't run or may not, a line for each reason, and adds notes.
func (p *Resolved) Lines() []string {
	cells := map[string]int{} // by engine
	for i := range p.Cells {
		cells[p.Cells[i].Engine]++
	}
	var out []string
	reasons := p.Reasons()
	for i, why := range reasons {
		if i == mostReasons {
			out = append(out, fmt.Sprintf("… and %d more reasons; --dry-run shows each cell", len(reasons)-i))
			break
		}
		of := 0
		for _, name := range why.Engines {
			of += cells[name]
		}
		what := "can't run here"
		if why.Answer == engine.Unknown {
			what = "may run here"
		}
		out = append(out, fmt.Sprintf("%s: %d of %s %s: %s", strings.Join(why.Engines, ", "), why.Cells,
			words.Count(of, "cell"), what, fault.OneLine(why.Err.Error())))
	}
	return append(out, p.Notes...)
}

// unserved lists fields of a setup's plan that an engine does not support, so that its cells are refused. Each line
// begins with the field. Models and versions are not considered.
func unserved(p plan.Plan, name string) (out []string) {
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	k := p.Kind(name)
	if n := p.TensorParallel; n > 1 && !k.Remote && !k.Deploys {
		say("tensor_parallel_size: %d: %s does not split a model among GPUs; use 1, or measure a server that does", n, name)
	}
	if p.ContainerName != "" && !k.Inside && !k.Browser {
		say("container_name: %s: llmparity does not start %s in a container; drop container_name to start it on this machine",
			p.ContainerName, name)
	}
	if p.Quantization != "" && !k.Remote && !k.Deploys {
		say("quantization: %s: not supported by %s; choose a model file with such weights", p.Quantization, name)
	}
	if p.DType != "" && k.DTypes != nil && !slices.Contains(k.DTypes, p.DType) {
		say("dtype: %s: %s supports %s", p.DType, name, strings.Join(k.DTypes, " or "))
	}
	switch {
	case p.KVDType == "":
	case k.KVTypes == nil:
		say("kv_cache_dtype: %s: not supported by %s", p.KVDType, name)
	case !slices.Contains(k.KVTypes, p.KVDType):
		say("kv_cache_dtype: %s: %s supports %s", p.KVDType, name, strings.Join(k.KVTypes, ", "))
	}
	return out
}

// unheeded lists fields of a setup's plan that are ignored, or only enter predictions. Each line begins with the field.
func unheeded(p plan.Plan) (out []string) {
	for _, name := range p.Engines {
		k := p.Kind(name)
		if k.Remote && (p.DType != "" || p.TensorParallel > 1 || p.Quantization != "") {
			out = append(out, fmt.Sprintf("dtype, tensor_parallel_size, quantization: used for predictions "+
				"only, because the server of %s has its own settings; set the values that it was started with", name))
		} else if p.DType != "" && k.DTypes != nil && !k.Uses("dtype") {
			out = append(out, fmt.Sprintf("dtype: %s is ignored by %s; it computes with the weights of the file, and "+
				"kv_cache_dtype sets the dtype of its KV cache", p.DType, name))
		}
	}
	deploys := slices.ContainsFunc(p.Engines, func(name string) bool { return p.Kind(name).Deploys })
	for _, name := range p.Engines {
		if p.ContainerName != "" && p.Kind(name).Browser {
			out = append(out, fmt.Sprintf("container_name: %s is ignored by %s, whose browser runs on this machine",
				p.ContainerName, name))
		}
	}
	if p.GPUMemory != 0 && !deploys {
		out = append(out, fmt.Sprintf("gpu_memory_utilization: %g is ignored: no engine of the plan reserves GPU memory in advance",
			p.GPUMemory))
	}
	return out
}
