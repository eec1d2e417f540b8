package catalogue_test

import (
	"net/url"
	"path"
	"strings"
	"testing"

	"llmparity/assets/bundle"
	"llmparity/internal/kit/check"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models/catalogue"
)

func TestBuiltInCatalogue(t *testing.T) {
	c := builtIn(t)
	if c.WebLLM != bundle.Version || len(c.Models) < 100 {
		t.Errorf("the catalogue is that of WebLLM %s, with %d models; the bundle is %s: run scripts/setup npm",
			c.WebLLM, len(c.Models),
			bundle.Version)
	}
	seen := map[string]bool{}
	for _, e := range c.Models {
		if key := strings.ToLower(e.ID); strings.ContainsAny(e.ID, `/\`) || strings.HasPrefix(e.ID, ".") || seen[key] {
			t.Errorf("id %q is no folder name, or there twice", e.ID)
		} else {
			seen[key] = true
		}
		for _, address := range []string{e.Model, e.Library} {
			u, err := url.Parse(address)
			if err != nil || u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || path.Clean(u.Path) != u.Path {
				t.Errorf("%s: %s", e.ID, address)
			}
		}
	}
	e := entry(t)
	if e.Context() != 4096 || e.VRAM < 100 || e.Type != catalogue.Chat || !strings.HasSuffix(e.Library, libraryPath) {
		t.Errorf("%+v", e)
	}
}

func TestNeedsShaderF16(t *testing.T) {
	c := builtIn(t)
	for id, want := range map[string]bool{
		"SmolLM2-135M-Instruct-q0f16-MLC":               true, // stated
		"Llama-3.2-1B-Instruct-q4f16_1-MLC":             true, // only its name tells
		"Llama-3.1-70B-Instruct-q3f16_1-MLC":            true,
		"SmolLM2-135M-Instruct-q0f32-MLC":               false,
		"Ministral-3-3B-Instruct-2512-BF16-q4f32_1-MLC": false, // made from another type
	} {
		e, err := c.Find(id)
		check.Err(t, err)
		if e.Needs(catalogue.ShaderF16) != want || e.Needs("timestamp-query") {
			t.Errorf("%s: %v", id, !want)
		}
		for _, features := range [][]string{nil, {}, {"timestamp-query", catalogue.ShaderF16}} {
			err := e.Check(features)
			if refused := want && features != nil && len(features) == 0; (err != nil) != refused ||
				refused && fault.Of(err) != fault.NoF16 {
				t.Errorf("%s with %v: %v", id, features, err)
			}
		}
	}
}

func TestNeedsAnotherFeature(t *testing.T) {
	e := catalogue.Entry{ID: "a-q4f32_1", Features: []string{"subgroups"}}
	if err := e.Check([]string{catalogue.ShaderF16}); fault.Of(err) != fault.NoAdapter ||
		!strings.Contains(err.Error(), "subgroups") {
		t.Errorf("%v", err)
	}
	if err := e.Check([]string{"subgroups"}); err != nil || !e.Needs("subgroups") {
		t.Errorf("%v", err)
	}
}

func TestFindOffersTheNearest(t *testing.T) {
	c := builtIn(t)
	for name, want := range map[string]string{
		"SmolLM2-135M-Instruct-q0f32":     "SmolLM2-135M-Instruct-q0f32-MLC",
		"smollm2-135m-instruct-q0f32-mlc": "SmolLM2-135M-Instruct-q0f32-MLC",
		"LLama-3.2-1B-instruct-q4f32":     "Llama-3.2-1B-Instruct-q4f32_1-MLC",
		"phi2-q4f16":                      "phi-2-q4f16_1-MLC",
		strings.Repeat("x", 1<<20):        "",
		"":                                "",
	} {
		_, err := c.Find(name)
		if fault.Of(err) != fault.UnknownModel || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", name[:min(len(name), 40)], err)
		}
	}
}
