package main

import (
	"context"
	"fmt"
	"os"
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
		e := new(engineFlags).named(name)
		err := e.Check(ctx, m)
		if _, packaged := e.(engine.Preparer); packaged && err == nil {
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
	return modellib.FindTools(cache.Dir(os.Getenv), os.Getenv).Ready(shape, flags.variant(browser.Target{Kernels: browser.SoftwareKernels}))
}

const noGGUF = "llama.cpp reads GGUF files alone"

func packageAbilities(p mlc.Existing, params []mlc.Param) map[string]ability {
	a := ability{Can: "runs it with a model library of its quantization (llmparity run --model FOLDER --model-lib FILE)" + needsF16(p.Quantization)}
	if p.Library != "" {
		l, err := mlc.OpenLibrary(p.Library)
		if err == nil {
			err = l.MatchesPackage(p, params)
		}
		if err != nil {
			a = ability{Cannot: err.Error()}
		} else {
			a.Can = fmt.Sprintf("runs it with the library in it (%s), which fits (llmparity run --model FOLDER)%s", l.Quantization, needsF16(p.Quantization))
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
	a := ability{Can: fmt.Sprintf("runs the model that it was compiled for: llmparity run --model GGUF --model-lib FILE --dtype %s%s", dtype, needsF16(l.Quantization))}
	if err := (browser.Bundle{}).Fits(l.Imports); err != nil {
		a = ability{Cannot: err.Error()}
	}
	if !slices.Contains([]string{gguf.Llama, gguf.Qwen2}, l.ModelType) {
		a = ability{Cannot: fmt.Sprintf("no package of the architecture %s can be made here", l.ModelType)}
	}
	if dtype == "" {
		a = ability{Cannot: fmt.Sprintf("no package with weights of %s can be made here: q0f32 and q0f16 can", l.Quantization)}
	}
	return map[string]ability{browser.Name: a, llamacpp.Name: {Cannot: "it has no weights, and " + noGGUF}}
}
