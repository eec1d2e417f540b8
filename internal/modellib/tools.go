package modellib

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os/exec"
	"path/filepath"

	"llmparity/assets/modellib"
	"llmparity/internal/fault"
)

// The environment variables that name other tools than the ones that `make setup` provides.
const (
	PythonVariable = "LLMPARITY_PYTHON"
	EmccVariable   = "LLMPARITY_EMCC"
)

// Tools is what compiling takes. None of it is needed for a library that the cache holds.
type Tools struct {
	Python string // an interpreter with the compiler's requirements installed
	Emcc   string // Emscripten's compiler, a path or a name on PATH
	Cache  string // the cache folder
}

// FindTools names the tools for a cache folder; it does not look whether they are there.
func FindTools(cache string, getenv func(string) string) Tools {
	t := Tools{Python: getenv(PythonVariable), Emcc: getenv(EmccVariable), Cache: cache}
	if t.Python == "" {
		t.Python = filepath.Join(VenvDir(cache), "bin", "python")
	}
	if t.Emcc == "" {
		t.Emcc = "emcc"
	}
	return t
}

// VenvDir is where `make setup` puts the compiler's Python environment: named by what the environment must hold.
func VenvDir(cache string) string {
	requirements, err := fs.ReadFile(modellib.Files, "requirements.txt")
	if err != nil {
		panic(err) // embedded: it can't be missing
	}
	sum := sha256.Sum256(requirements)
	return filepath.Join(cache, "python", hex.EncodeToString(sum[:])[:12])
}

// check finds what is missing before anything is started. Emcc is looked up here because its absence is no error of
// Python's.
func (t Tools) check() error {
	if _, err := exec.LookPath(t.Python); err != nil {
		return noPython("Python at %s can't be run: %v", t.Python, cause(err))
	}
	if _, err := exec.LookPath(t.Emcc); err != nil {
		return noEmcc("emcc, the compiler of Emscripten, is missing: %v", cause(err))
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
	return fault.New(fault.NoPython, "run `make setup`, or name a Python that has the packages in "+PythonVariable,
		format, args...)
}

func noEmcc(format string, args ...any) error {
	return fault.New(fault.NoEmscripten, "run `make setup`, or name an emcc in "+EmccVariable, format, args...)
}
