//go:build slow

package main

import (
	"context"
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"llmparity/browser"
	"llmparity/browser/webllm"
	"llmparity/internal/engine"
	"llmparity/internal/host/cache"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models"
	"llmparity/internal/models/mlc"
	"llmparity/internal/models/modellib"
	"llmparity/internal/models/tiny"
	"llmparity/internal/models/tiny/tinytest"
	"llmparity/internal/record"
	"llmparity/native/llamacpp"
)

// WebLLM generates the reference's tokens with every feature of the architectures and every kind of model library.
func TestWebLLMHasEveryFeature(t *testing.T) {
	haveFeatures(t, tinytest.Features())
}

// So it does with weights of every type in their own bits.
func TestWebLLMKeepsEveryType(t *testing.T) { haveFeatures(t, tinytest.Types()) }

func haveFeatures(t *testing.T, features []tinytest.Feature) {
	for _, kernels := range []string{webllm.SoftwareKernels, webllm.GPUKernels} {
		for _, feature := range features {
			t.Run(kernels+", "+feature.Name, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
				defer cancel()
				_, m := featureNamed(t, ctx, feature.Name)
				session := load(t, ctx, webLLM(webllm.Config{Kernels: kernels}), m)
				answersLikeReference(t, ctx, session, m.Path, feature.Prompts())
			})
		}
	}
}

// With MLC's kernels, WebLLM generates the reference's tokens for every architecture, or refuses the model in a line.
func TestWebLLMHasMLCKernels(t *testing.T) {
	q4 := slices.IndexFunc(tinytest.Types(), func(f tinytest.Feature) bool { return f.Name == "Q4_0" })
	for _, feature := range append(tinytest.Features(), tinytest.Types()[q4]) {
		t.Run(feature.Name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
			defer cancel()
			_, m := featureNamed(t, ctx, feature.Name)
			w := webLLM(webllm.Config{Kernels: webllm.MLCKernels})
			spec := feature.Spec
			if spec.Window > 0 || spec.AttentionCap > 0 || spec.RopeScaling == tiny.Long {
				err := w.Prepare(ctx, m, func(string) {})
				if fault.Of(err) != fault.BadModel || !strings.Contains(err.Error(), "--kernels mlc has no ") {
					t.Errorf("error %v, want a refusal", err)
				}
				return
			}
			answersLikeReference(t, ctx, load(t, ctx, w, m), m.Path, feature.Prompts())
		})
	}
}

// absences are features that a library is compiled without: the model, what its shape lacks, and weights that go.
// TestFeaturesMatter has those that a random model can lack.
var absences = []struct {
	name, model string
	change      func(*modellib.Shape)
	weights     []string
}{
	{"nothing", "qwen3", func(*modellib.Shape) {}, nil},
	{"norms of heads", "qwen3", func(s *modellib.Shape) { s.QKNorm = false }, []string{"q_norm", "k_norm"}},
	{"nothing", "gemma2", func(*modellib.Shape) {}, nil},
	{"layers without a window", "gemma2", func(s *modellib.Shape) { s.LocalLayers = nil }, nil},
	{"post norms", "gemma2", func(s *modellib.Shape) { s.PostNorms = false }, []string{"_feedforward_"}},
	{"GELU", "gemma2", func(s *modellib.Shape) { s.GELU = false }, nil},
	{"scale of embeddings", "gemma2", func(s *modellib.Shape) { s.EmbeddingScale = 0 }, nil},
	{"cap of logits", "gemma2", func(s *modellib.Shape) { s.FinalLogitSoftcapping = 0 }, nil},
	{"scale of scores", "gemma2 of 46 layers, whose scores have another scale",
		func(s *modellib.Shape) { s.QueryPreAttnScalar = 0 }, nil},
	{"order of the bases", "gemma3, two bases and linear scaling",
		func(s *modellib.Shape) { s.RopeLocalTheta, s.RopeTheta = s.RopeTheta, s.RopeLocalTheta }, nil},
	{"cap of logits", "gemma3, two bases and linear scaling",
		func(s *modellib.Shape) { s.FinalLogitSoftcapping = 0 }, nil},
	{"half of the rotation", "phi3", func(s *modellib.Shape) { s.RotaryDim = s.HeadDim / 2 }, nil},
	{"nothing", "phi3 beyond its original context, rotated in part", func(*modellib.Shape) {}, nil},
	{"attention factor", "phi3 beyond its original context, rotated in part",
		func(s *modellib.Shape) { s.RopeAttentionFactor = 0 }, nil},
}

// Without a feature in the kernels, texts differ, so TestWebLLMHasEveryFeature notices kernels that ignore it. The cap
// of logits keeps their order: it shows in the probabilities.
func TestWebLLMWithoutAFeature(t *testing.T) {
	for _, c := range absences {
		t.Run(c.model+" without "+c.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			feature, whole := featureNamed(t, ctx, c.model)
			dir := packageWithout(t, ctx, whole.Path, c.change, c.weights)
			m, err := models.OpenPackage(dir, "", featureContext)
			check(t, err)
			session := load(t, ctx, webLLM(webllm.Config{Kernels: webllm.SoftwareKernels}), m)
			_, expect := oracle(t, whole.Path)
			differ, apart := 0, 0.0
			for _, p := range feature.Prompts() {
				in, ids := spoken(t, ctx, session, p.Text, answered)
				want, _, err := expect.Greedy(in, answered)
				check(t, err)
				if !slices.Equal(ids, want) {
					differ++
				}
				f := engine.Forced{Prompt: in, IDs: want, Top: 2}
				scores := thirdOpinion(expect, f)
				check(t, session.(engine.Scorer).Score(ctx, f, func(s record.Score) {
					apart = max(apart, math.Abs(s.LogProb-scores[s.Position].LogProb))
				}))
			}
			t.Logf("%d of %d texts differ, log-probabilities by up to %.2g", differ, len(feature.Prompts()), apart)
			switch {
			case c.name == "nothing" && (differ > 0 || apart > 0.05):
				t.Error("texts or probabilities differ")
			case c.name == "cap of logits" && (differ > 0 || apart < 0.1):
				t.Error("the texts differ, or the probabilities don't")
			case c.name != "nothing" && c.name != "cap of logits" && differ == 0:
				t.Error("no text differs")
			}
		})
	}
}

// packageWithout converts a model to a package whose library is compiled for a changed shape.
func packageWithout(t *testing.T, ctx context.Context, path string, change func(*modellib.Shape),
	weights []string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "package")
	p, err := mlc.Write(ctx, path, dir, mlc.Options{ContextWindow: featureContext})
	check(t, err)
	change(&p.Shape)
	tools := modellib.FindTools(cache.Dir(os.Getenv), os.Getenv)
	built, err := modellib.Build(ctx, tools, p.Shape, modellib.Variant{Kernels: "software", Sort: "partial"},
		func(s string) { t.Log(s) })
	check(t, err)
	library := readFile(t, built.Path)
	put(t, dir, mlc.LibraryName, library)
	rewriteJSON(t, dir, "mlc-chat-config.json", func(c map[string]any) { c["model_config"] = p.Shape })
	if len(weights) == 0 {
		return dir
	}
	rewriteJSON(t, dir, "tensor-cache.json", func(c map[string]any) {
		for _, r := range c["records"].([]any) {
			dropWeights(t, dir, r.(map[string]any), weights)
		}
	})
	return dir
}

// dropWeights removes the weights with such names from a shard.
func dropWeights(t *testing.T, dir string, shard map[string]any, names []string) {
	t.Helper()
	file := shard["dataPath"].(string)
	content := readFile(t, filepath.Join(dir, file))
	var kept []any
	var bytes string
	for _, r := range shard["records"].([]any) {
		w := r.(map[string]any)
		if slices.ContainsFunc(names, func(n string) bool { return strings.Contains(w["name"].(string), n) }) {
			continue
		}
		from, size := int(w["byteOffset"].(float64)), int(w["nbytes"].(float64))
		w["byteOffset"] = len(bytes)
		kept, bytes = append(kept, w), bytes+content[from:from+size]
	}
	sum := md5.Sum([]byte(bytes))
	shard["records"], shard["nbytes"], shard["md5sum"] = kept, len(bytes), hex.EncodeToString(sum[:])
	put(t, dir, file, bytes)
}

// rewriteJSON changes a JSON file.
func rewriteJSON(t *testing.T, dir, file string, change func(map[string]any)) {
	t.Helper()
	content := decoded[map[string]any](t, readFile(t, filepath.Join(dir, file)))
	change(content)
	text, err := json.Marshal(content)
	check(t, err)
	put(t, dir, file, string(text))
}

// llama-server generates from the GGUF of a package as MLC's tools write it what WebLLM generates from the package.
func TestEnginesAgreeOnPackagesOfMLC(t *testing.T) {
	for _, name := range []string{"phi3 within its original context of 512",
		"phi3 beyond its original context, rotated in part", "gemma3, two bases and linear scaling"} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
			defer cancel()
			feature, m := featureNamed(t, ctx, name)
			dir := packageWithout(t, ctx, m.Path, func(*modellib.Shape) {}, nil)
			rewriteJSON(t, dir, "mlc-chat-config.json", feature.AsMLC)
			g, err := mlc.AsGGUF(dir, "model")
			check(t, err)
			file := filepath.Join(t.TempDir(), "model.gguf")
			check(t, g.Write(ctx, file))
			in, err := models.Open(t.Context(), file, featureContext)
			check(t, err)
			native := llamacpp.New(llamacpp.Config{Cache: cache.Dir(os.Getenv), KVType: "f32"})
			answersLikeReference(t, ctx, load(t, ctx, native, in), file, feature.Prompts())
			rewriteJSON(t, dir, "mlc-chat-config.json", func(c map[string]any) {
				c["model_type"] = feature.Spec.Architecture // as our library names it
			})
			in, err = models.OpenPackage(dir, "", featureContext)
			check(t, err)
			session := load(t, ctx, webLLM(webllm.Config{Kernels: webllm.SoftwareKernels}), in)
			answersLikeReference(t, ctx, session, file, feature.Prompts())
		})
	}
}

// In float16, WebLLM parts from the reference only where the best token leads by little, with weights of every type and
// all kinds of kernels.
func TestWebLLMComputesInFloat16(t *testing.T) {
	for _, kernels := range []string{webllm.SoftwareKernels, webllm.GPUKernels, webllm.MLCKernels} {
		for _, feature := range append(tinytest.Types(), tinytest.Features()[0]) {
			if kernels == webllm.MLCKernels && feature.Name != "Q4_0" && feature.Spec.Type != "" {
				continue // refused
			}
			t.Run(kernels+", "+feature.Name, func(t *testing.T) {
				nearReference(t, kernels, feature, engine.Settings{DType: webllm.F16})
			})
		}
	}
}

// The KV cache may have another dtype than activations.
func TestWebLLMHasKVCachesOfOtherDTypes(t *testing.T) {
	for _, kernels := range []string{webllm.SoftwareKernels, webllm.GPUKernels} {
		for _, s := range []engine.Settings{{DType: webllm.F32, KVDType: webllm.F16},
			{DType: webllm.F16, KVDType: webllm.F32}} {
			t.Run(kernels+", "+s.DType+" and "+s.KVDType, func(t *testing.T) {
				nearReference(t, kernels, tinytest.Features()[0], s)
			})
		}
	}
}

// nearReference checks that WebLLM generates the reference's tokens as far as float16 cannot change them.
func nearReference(t *testing.T, kernels string, feature tinytest.Feature, s engine.Settings) {
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	_, m := featureNamed(t, ctx, feature.Name)
	s.Cache = cache.Dir(os.Getenv)
	session := load(t, ctx, webllm.New(webllm.Config{Kernels: kernels,
		Settings: browser.Settings{Adapter: string(browser.Lavapipe)}}, s), m)
	tokens, expect := oracle(t, m.Path)
	for _, p := range feature.Prompts() {
		prompt := tokens.Prompt(p.Text)
		want, margins, err := expect.Greedy(prompt, answered)
		check(t, err)
		_, ids := spoken(t, ctx, session, p.Text, answered)
		if at := firstDifference(ids, want); at >= 0 {
			t.Logf("%s: they part at token %d, where the top two are %.3f apart", p.Name, at+1, margins[at])
			if margins[at] > 1 {
				t.Errorf("%s: %v, want %v", p.Name, ids, want)
			}
		}
	}
}

// Prompts of several chunks give other tokens with MLC's kernels, and the report says why.
func TestParityNamesTheMissingBarrier(t *testing.T) {
	cmd := program(t, "run", "--engines", "webllm,llamacpp", "--kernels", "mlc", "--adapter", "swiftshader",
		"--input-len", "300", "--max-tokens", "12", "--repetitions", "1", "--parity",
		"--timeout", "15m")
	well(t, cmd)
	mentions(t, details(t, cmd.Dir), "lacks a barrier")
}
