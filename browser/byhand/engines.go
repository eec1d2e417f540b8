package byhand

import (
	"llmparity/browser"
	"llmparity/internal/engine"
)

// Engine is one that a person can choose, on a device.
type Engine struct {
	Name  string   `json:"name"`
	Title string   `json:"title"`
	Needs []string `json:"needs,omitempty"` // features of the browser
	Args  []string `json:"-"`               // of `llmparity run`
}

// Backends as people call them, and what runtimes need of a browser on each.
var (
	backends = map[string]string{"wasm": "WebAssembly", browser.WebGPU: "WebGPU"}
	needs    = map[string][]string{"webllm": {browser.WebGPU}, "transformersjs webgpu": {browser.WebGPU},
		"wllama webgpu": {browser.WebGPU, "shader-f16"}}
)

// EnginesOf lists those that run in a browser, once for each backend.
func EnginesOf(kinds engine.Kinds) (out []Engine) {
	for _, k := range kinds {
		if !k.Browser {
			continue
		}
		one, several := []string{"--engines=" + k.Name}, false
		for _, field := range k.Config().Fields() {
			if field.Key != "backend" {
				continue
			}
			for _, value := range field.OneOf {
				if title, ok := backends[value]; ok { // the page chooses, so there is no "auto"
					name := k.Name + " " + value
					out, several = append(out, Engine{Name: name, Title: k.Title + ", " + title, Needs: needs[name],
						Args: append(one, "--"+field.Flag+"="+value)}), true
				}
			}
		}
		if !several {
			out = append(out, Engine{Name: k.Name, Title: k.Title, Needs: needs[k.Name], Args: one})
		}
	}
	return out
}
