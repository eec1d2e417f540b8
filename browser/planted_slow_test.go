//go:build slow

package browser_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"llmparity/browser"
	"llmparity/browser/transformersjs"
	"llmparity/browser/webllm"
	"llmparity/browser/wllama"
	"llmparity/internal/depth"
	"llmparity/internal/engine"
	"llmparity/internal/engine/enginetest"
	"llmparity/internal/host/cache"
	"llmparity/internal/kit/check"
	"llmparity/internal/record"
)

// plant has shaders with some text do their work many times: a loop goes around the body of their entry point. The
// worker that wllama makes gets the same, before its own script.
const plant = `(() => {
	const plant = (text, times) => {
		const { createShaderModule } = GPUDevice.prototype;
		GPUDevice.prototype.createShaderModule = function (descriptor) {
			let { code } = descriptor;
			if (((descriptor.label ?? "") + code).includes(text)) {
				const at = code.indexOf("{", code.indexOf("fn ", code.indexOf("@compute"))) + 1;
				let open = 1, end = at;
				for (; open > 0; end++) open += { "{": 1, "}": -1 }[code[end]] ?? 0;
				code = code.slice(0, at) + "for (var planted = 0; planted < " + times + "; planted++) {" +
					code.slice(at, end) + "}" + code.slice(end);
			}
			return createShaderModule.call(this, { ...descriptor, code });
		};
	};
	const [text, times] = [%q, %d];
	plant(text, times);
	const Before = Blob;
	globalThis.Blob = class extends Before {
		constructor([first, ...parts], options) {
			if (typeof first === "string" && first.startsWith("import ")) {
				const own = new Before(["(" + plant + ")(" + JSON.stringify(text) + ", " + times + ")"],
					{ type: "text/javascript" });
				first = 'import "' + URL.createObjectURL(own) + '"; ' + first;
			}
			super([first, ...parts], options);
		}
	};
	return true;
})()`

// A matrix product that repeats itself is the first kernel of each engine's profile.
func TestPlantedSlowKernel(t *testing.T) {
	for _, c := range []struct {
		kind   *engine.Kind
		config func(engine.Config) engine.Config
		shader string // in the label or the code of the shaders to slow down
		times  int
		kernel string
	}{
		{webllm.Kind, func(c engine.Config) engine.Config {
			c.(*webllm.Config).Adapter = string(browser.SwiftShader)
			return c
		}, "fn down_one_kernel", 1000, "down_one_kernel"},
		{transformersjs.Kind, func(c engine.Config) engine.Config {
			c.(*transformersjs.Config).Adapter = string(browser.SwiftShader)
			c.(*transformersjs.Config).Backend = transformersjs.WebGPU
			return c
		}, "MatMul", 20, "MatMul"},
		{wllama.Kind, func(c engine.Config) engine.Config {
			c.(*wllama.Config).Adapter = string(browser.Lavapipe)
			c.(*wllama.Config).Backend = wllama.WebGPU
			return c
		}, "mul_mat_vec", 100, "mul_mat_vec_f32_f32_sg_reduce_vectorized"},
	} {
		t.Run(c.kind.Name, func(t *testing.T) {
			config := c.config(c.kind.Config())
			config.(interface{ Deepen() }).Deepen()
			e := c.kind.New(c.kind.Name, config, engine.Settings{Cache: cache.Dir(os.Getenv), Threads: 1})
			s, _ := enginetest.Open(t, e)
			page := s.(*browser.Session)
			_, err := browser.Call[bool](t.Context(), page.Page, fmt.Sprintf(plant, c.shader, c.times))
			check.Err(t, err)
			enginetest.Load(t, s, enginetest.TinyModel(t))
			request := engine.Request{Prompt: "the quick brown fox", MaxTokens: 8, IgnoreEOS: true}
			_, err = enginetest.Generate(t.Context(), s, request)
			check.Err(t, err)
			p, err := page.Deep(t.Context(), request, filepath.Join(t.TempDir(), "planted"))
			check.Err(t, err)
			first := depth.Kernels(slices.DeleteFunc(p.Rows,
				func(r depth.Row) bool { return r.Phase != record.Decode }))
			var planted, sum time.Duration
			for _, row := range first {
				sum += row.Self
				if row.Kernel == c.kernel { // of each role
					planted += row.Self
				}
			}
			t.Logf("%v of %v; first %+v", planted, sum, first[:3])
			// ONNX Runtime's and ggml's matrix products have 75% of decode without that.
			if first[0].Kernel != c.kernel || planted < sum*9/10 {
				t.Errorf("%s takes %v of %v, and %s is first", c.kernel, planted, sum, first[0].Kernel)
			}
		})
	}
}
