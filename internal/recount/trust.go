package recount

import "slices"

// By which method a component of memory is known, and how far that can be trusted, worked out again by the rules in
// words.

// wholeOf is of what the whole is, by its method.
func wholeOf() map[string]string {
	return map[string]string{"gpu_memory_of_processes": "GPU memory of its processes", "smaps_rollup": "total PSS",
		"statm": "RSS sum"}
}

// by is the method of a component that has a value.
func (g *memoryAgain) by(component string, wasRead bool) string {
	switch component {
	case "framework_overhead":
		return "difference"
	case "multi_gpu_overhead":
		return "formula"
	case "increase", "total":
		switch {
		case g.onGPU():
			return "gpu_memory_of_processes"
		case len(g.cell.Figures["peak_pss"].Values) > 0 || len(g.cell.Figures["peak_rss_sum"].Values) == 0:
			return "smaps_rollup"
		}
		return "statm"
	case "model_weights":
		if !wasRead && !g.widened() {
			return "tensors"
		}
	}
	switch {
	case !wasRead:
		return "formula"
	case g.methods["webgpu_ledger"]:
		return "webgpu_ledger"
	}
	return "engine_log"
}

// levels are the words, the lowest first.
func levels() []string { return []string{"low", "medium", "high"} }

func trust(component, method string) string {
	switch method {
	case "difference", "statm":
		return "low"
	case "formula", "server_metrics":
		return "medium"
	}
	if component == "activations" || component == "kv_cache_used" {
		return "medium"
	}
	return "high"
}

// origin is how a component with a value was obtained.
func origin(component, method string) string {
	switch {
	case component == "kv_cache_used", method == "formula", method == "difference":
		return "calculated"
	case method == "tensors":
		return "file size"
	case method == "engine_log":
		return "reported"
	}
	return "measured"
}

// least is the lowest of weights, KV cache and activations: low where one is not known.
func (g *memoryAgain) least(parts map[string]Figure, wasRead map[string]bool) string {
	at := len(levels()) - 1
	for _, name := range []string{"model_weights", "kv_cache", "activations"} {
		if len(parts[name].Values) == 0 {
			return "low"
		}
		at = min(at, slices.Index(levels(), trust(name, g.by(name, wasRead[name]))))
	}
	return levels()[at]
}

// word holds one against another.
func (c *check) word(what, got, want string) {
	c.Helper()
	if c.compared++; got != want {
		c.Errorf("%s is %q in the report, and %q worked out again", what, got, want)
	}
}
