package webllm

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"llmparity/internal/dtype"
	"llmparity/internal/host/cache"
	"llmparity/internal/models"
	"llmparity/internal/models/gguf"
	"llmparity/internal/models/mlc"
	"llmparity/internal/models/modellib"
)

// Converts returns why a GGUF cannot be converted to a package, regardless of its size.
func Converts(f *gguf.File, context int) error {
	if err := f.RequireReadable(); err != nil {
		return err
	}
	if _, err := f.Vocabulary(); err != nil {
		return err
	}
	_, err := mlc.Shape(f, PackageOptions(context, F32, F32, mlc.AsIs))
	return err
}

// cannotMake returns why the package and library of a GGUF that Accepts does not refuse cannot be made here.
func cannotMake(m models.Model) error {
	f, err := gguf.Open(m.Path)
	if err != nil {
		return err
	}
	defer f.Close()
	shape, err := mlc.Shape(f, PackageOptions(m.Context, F32, F32, mlc.AsIs))
	if err != nil {
		return err
	}
	return modellib.FindTools(cache.Dir(os.Getenv), os.Getenv).Ready(shape,
		newConfig().variant(Target{Kernels: SoftwareKernels}))
}

// canPackage says how WebLLM runs a package, or returns why it cannot.
func canPackage(dir string) (string, error) {
	p, err := mlc.OpenPackage(dir)
	if err != nil {
		return "", err
	}
	fits := func(file string) error {
		l, err := mlc.OpenLibrary(file)
		if err == nil {
			err = l.MatchesPackage(p)
		}
		return err
	}
	with, flag := "a model library of its quantization", " --model-lib FILE"
	switch {
	case len(p.Libraries) > 1:
		fitting := 0
		var which []string
		for _, file := range p.Libraries {
			words := " (does not fit)"
			if fits(file) == nil {
				words = " (fits)"
				fitting++
			}
			which = append(which, filepath.Base(file)+words)
		}
		if fitting == 0 {
			return "", errors.New("none of its libraries fits: " + strings.Join(which, ", "))
		}
		with = "one of its libraries, " + strings.Join(which, ", ")
	case p.Library != "":
		if err := fits(p.Library); err != nil {
			return "", err
		}
		with, flag = "its library ("+p.Quantization+"), which fits", ""
	}
	return fmt.Sprintf("runs it with %s (llmparity run --model FOLDER%s)%s", with, flag, needsF16(p.Quantization)), nil
}

// needsF16 is the condition for a model that computes in float16.
func needsF16(quantization string) string {
	if strings.Contains(quantization, F16) {
		return ", if the WebGPU adapter has shader-f16"
	}
	return ""
}

// canLibrary says where a library comes from and which model runs with it, or returns why none does.
func canLibrary(path string, l mlc.Library) (origin, can string, err error) {
	can, err = runsWith(l)
	of := Describe(path, l)
	return of.String(), can, err
}

// runsWith says which model runs with a library. It considers the architectures and quantizations of packages that can
// be made here.
func runsWith(l mlc.Library) (string, error) {
	as := ""
	if p, ok := dtype.PackedAs(l.Quantization); ok && slices.Contains(mlc.Convertible, l.Quantization) {
		as = p.Plain.Name
	}
	if l.Own != nil && l.Own.Shape.DType == mlc.Float16 {
		as = F16
	} else if l.Own != nil {
		as = F32
	}
	if as == "" {
		return "", fmt.Errorf("cannot make packages with %s weights here", l.Quantization)
	}
	if !slices.Contains(gguf.Supported(), l.ModelType) {
		return "", fmt.Errorf("cannot make packages of the architecture %s here", l.ModelType)
	}
	if err := (Bundle{}).Fits(l.Imports); err != nil {
		return "", err
	}
	return fmt.Sprintf("runs the model that it was compiled for: llmparity run --model GGUF --model-lib FILE --dtype %s%s",
		as, needsF16(l.Quantization)), nil
}
