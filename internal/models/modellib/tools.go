package modellib

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os/exec"
	"path/filepath"

	"llmparity/assets/modellib"
	"llmparity/internal/kit/fault"
)

// Environment variables that replace the tools installed by `make setup`.
const (
	PythonVariable = "LLMPARITY_PYTHON"
	EmccVariable   = "LLMPARITY_EMCC"
)

// Tools are the programs for compiling. Cached libraries need none of them.
type Tools struct {
	Python string // an interpreter with the compiler's requirements installed
	Emcc   string // Emscripten's compiler, a path or a name on PATH
	Cache  string // the cache folder
}

// FindTools returns the tools for a cache folder, without checking that they exist.
func FindTools(cache string, getenv func(string) string) Tools {
	return Tools{Python: cmp.Or(getenv(PythonVariable), filepath.Join(VenvDir(cache), "bin", "python")),
		Emcc: cmp.Or(getenv(EmccVariable), "emcc"), Cache: cache}
}

// VenvDir returns the folder of the compiler's Python environment, named after its requirements.
func VenvDir(cache string) string {
	requirements, err := fs.ReadFile(modellib.Files, "requirements.txt")
	if err != nil {
		panic(err) // it is embedded
	}
	sum := sha256.Sum256(requirements)
	return filepath.Join(cache, "python", hex.EncodeToString(sum[:])[:12])
}

// check finds missing tools before anything starts. It looks up emcc, because Python would not report it.
func (t Tools) check() error {
	if _, err := exec.LookPath(t.Python); err != nil {
		return noPython("cannot run Python at %s: %v", t.Python, cause(err))
	}
	if _, err := exec.LookPath(t.Emcc); err != nil {
		return noEmcc("emcc, Emscripten's compiler, is missing: %v", cause(err))
	}
	return nil
}

func cause(err error) error {
	if e, ok := errors.AsType[*exec.Error](err); ok {
		return e.Err
	}
	return err
}

func noPython(format string, args ...any) error {
	return fault.New(fault.NoPython, "run `make setup`, or set "+PythonVariable+" to a Python with the packages",
		format, args...)
}

func noEmcc(format string, args ...any) error {
	return fault.New(fault.NoEmscripten, "run `make setup`, or set "+EmccVariable, format, args...)
}
