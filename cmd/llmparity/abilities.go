package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"llmparity/browser"
	"llmparity/internal/cache"
	"llmparity/internal/engine"
	"llmparity/internal/gguf"
	"llmparity/internal/mlc"
	"llmparity/internal/modellib"
	"llmparity/native/llamacpp"
)

// ggufAbilities says what each engine can do with a GGUF here. None is started.
func ggufAbilities(ctx context.Context, m engine.Model, f *gguf.File) map[string]ability {
	out := map[string]ability{}
	for _, name := range names() {
		k, _, _ := kindOf(name)
		if k.gguf == nil {
			continue
		}
		e := new(engineFlags).named(name)
		err := e.Check(ctx, m)
		if name == browser.Name && err == nil {
			err = packageable(f, m.Context)
		}
		if err != nil {
			out[name] = ability{Cannot: err.Error()}
		} else {
			out[name] = ability{Can: k.gguf(m.DType)}
		}
	}
	return out
}

// packageable tells whether a package and a library of the model can be made here.
func packageable(f *gguf.File, context int) error {
	if err := f.RequireReadable(); err != nil {
		return err
	}
	if _, err := f.Vocabulary(); err != nil {
		return err
	}
	var flags packageFlags
	shape, err := mlc.Shape(f, flags.options(context))
	if err != nil {
		return err
	}
	return modellib.FindTools(cache.Dir(os.Getenv), os.Getenv).Ready(shape,
		flags.variant(browser.Target{Kernels: browser.SoftwareKernels}))
}

const noGGUF = "llama.cpp reads GGUF files alone"

func packageAbilities(p mlc.Existing, params []mlc.Param) map[string]ability {
	a := ability{Can: "runs it with a model library of its quantization (llmparity run --model FOLDER --model-lib FILE)" +
		needsF16(p.Quantization)}
	fits := func(file string) error {
		l, err := mlc.OpenLibrary(file)
		if err == nil {
			err = l.MatchesPackage(p, params)
		}
		return err
	}
	switch {
	case len(p.Libraries) > 1:
		fitting := 0
		var which []string
		for _, file := range p.Libraries {
			words := " (doesn't)"
			if fits(file) == nil {
				words = " (fits)"
				fitting++
			}
			which = append(which, filepath.Base(file)+words)
		}
		a.Can = fmt.Sprintf("runs it with one of the libraries in it, %s (llmparity run --model FOLDER --model-lib FILE)%s",
			strings.Join(which, ", "), needsF16(p.Quantization))
		if fitting == 0 {
			a = ability{Cannot: "none of the libraries in it fits: " + strings.Join(which, ", ")}
		}
	case p.Library != "":
		if err := fits(p.Library); err != nil {
			a = ability{Cannot: err.Error()}
		} else {
			a.Can = fmt.Sprintf("runs it with the library in it (%s), which fits (llmparity run --model FOLDER)%s",
				p.Quantization, needsF16(p.Quantization))
		}
	}
	return map[string]ability{browser.Name: a, llamacpp.Name: {Cannot: noGGUF}}
}

// needsF16 is what must be added where a model computes in float16.
func needsF16(quantization string) string {
	if strings.Contains(quantization, browser.F16) {
		return ", where the WebGPU adapter has shader-f16"
	}
	return ""
}

// libraryAbilities goes by the architectures and quantizations of which packages can be made here.
func libraryAbilities(l mlc.Library) map[string]ability {
	dtype := map[string]string{"q0f32": browser.F32, "q0f16": browser.F16}[l.Quantization]
	a := ability{Can: fmt.Sprintf("runs the model that it was compiled for: llmparity run --model GGUF --model-lib FILE --dtype %s%s",
		dtype, needsF16(l.Quantization))}
	if err := (browser.Bundle{}).Fits(l.Imports); err != nil {
		a = ability{Cannot: err.Error()}
	}
	if !slices.Contains([]string{gguf.Llama, gguf.Qwen2}, l.ModelType) {
		a = ability{Cannot: fmt.Sprintf("no package of the architecture %s can be made here", l.ModelType)}
	}
	if dtype == "" {
		a = ability{Cannot: fmt.Sprintf("no package with weights of %s can be made here: q0f32 and q0f16 can",
			l.Quantization)}
	}
	return map[string]ability{browser.Name: a, llamacpp.Name: {Cannot: "it has no weights, and " + noGGUF}}
}
