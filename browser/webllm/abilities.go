package webllm

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"llmparity/internal/cache"
	"llmparity/internal/engine"
	"llmparity/internal/gguf"
	"llmparity/internal/mlc"
	"llmparity/internal/modellib"
)

// Converts says why no package can be made of a GGUF, whatever its size is.
func Converts(f *gguf.File, context int) error {
	if err := f.RequireReadable(); err != nil {
		return err
	}
	if _, err := f.Vocabulary(); err != nil {
		return err
	}
	_, err := mlc.Shape(f, Options(context, F32))
	return err
}

// makes says why a package and a library of a GGUF can't be made here.
func makes(m engine.Model) error {
	f, err := gguf.Open(m.Path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := Converts(f, m.Context); err != nil {
		return err
	}
	shape, err := mlc.Shape(f, Options(m.Context, F32))
	if err != nil {
		return err
	}
	return modellib.FindTools(cache.Dir(os.Getenv), os.Getenv).Ready(shape,
		newConfig().variant(Target{Kernels: SoftwareKernels}))
}

// CanPackage says how WebLLM runs a package, or why it does not.
func CanPackage(p mlc.Existing, params []mlc.Param) (string, error) {
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
		if fitting == 0 {
			return "", errors.New("none of the libraries in it fits: " + strings.Join(which, ", "))
		}
		return fmt.Sprintf("runs it with one of the libraries in it, %s (llmparity run --model FOLDER --model-lib FILE)%s",
			strings.Join(which, ", "), needsF16(p.Quantization)), nil
	case p.Library != "":
		if err := fits(p.Library); err != nil {
			return "", err
		}
		return fmt.Sprintf("runs it with the library in it (%s), which fits (llmparity run --model FOLDER)%s",
			p.Quantization, needsF16(p.Quantization)), nil
	}
	return "runs it with a model library of its quantization (llmparity run --model FOLDER --model-lib FILE)" +
		needsF16(p.Quantization), nil
}

// needsF16 is what must be added where a model computes in float16.
func needsF16(quantization string) string {
	if strings.Contains(quantization, F16) {
		return ", where the WebGPU adapter has shader-f16"
	}
	return ""
}

// CanLibrary says which model runs with a library, or why none does. It goes by the architectures and quantizations of
// which packages can be made here.
func CanLibrary(l mlc.Library) (string, error) {
	dtype := map[string]string{"q0f32": F32, "q0f16": F16}[l.Quantization]
	if dtype == "" {
		return "", fmt.Errorf("no package with weights of %s can be made here: q0f32 and q0f16 can", l.Quantization)
	}
	if !slices.Contains([]string{gguf.Llama, gguf.Qwen2}, l.ModelType) {
		return "", fmt.Errorf("no package of the architecture %s can be made here", l.ModelType)
	}
	if err := (Bundle{}).Fits(l.Imports); err != nil {
		return "", err
	}
	return fmt.Sprintf("runs the model that it was compiled for: llmparity run --model GGUF --model-lib FILE --dtype %s%s",
		dtype, needsF16(l.Quantization)), nil
}
