package huggingface

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"llmparity/internal/engine"
	"llmparity/internal/host/child"
	"llmparity/internal/kit/fault"
)

// Variable is the environment variable that names the Python to use, like --huggingface-python.
const Variable = "LLMPARITY_HUGGINGFACE_PYTHON"

// environment is a Python with torch and transformers.
type environment struct {
	python              string
	torch, transformers string // versions
}

func (e environment) version() string { return e.transformers + " (torch " + e.torch + ")" }

// question prints the versions of the packages, without importing them.
const question = `import json, importlib.metadata as m
def v(name):
    try: return m.version(name)
    except m.PackageNotFoundError: return ""
print(json.dumps({n: v(n) for n in ("torch", "transformers")}))`

// find returns the Python that the user named; else one on PATH that has torch and transformers; else that of
// scripts/setup huggingface.
func (c Config) find(ctx context.Context) (environment, error) {
	if c.in != nil {
		return c.inside(ctx)
	}
	const install = "install them there, omit the setting, or run scripts/setup huggingface"
	for _, named := range []struct{ path, by string }{{c.Python, "--huggingface-python"},
		{os.Getenv(Variable), Variable}} {
		if named.path == "" {
			continue
		}
		path, err := exec.LookPath(named.path)
		if err != nil {
			return environment{}, engine.SetUp(fault.New(fault.NoPython, "name a Python program",
				"%s: %s cannot be run (%v)", named.by, named.path, errors.Unwrap(err)))
		}
		e, lacks, err := ask(ctx, path)
		switch {
		case err != nil:
			return e, engine.SetUp(fault.Wrap(fault.NoPython, err, "name a Python program", "%s", path))
		case lacks != "":
			return e, engine.SetUp(fault.New(fault.NoPython, install, "%s has no %s (%s)", path, lacks, named.by))
		}
		return e, nil
	}
	for _, name := range []string{"python3", "python"} {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		if e, lacks, err := ask(ctx, path); err == nil && lacks == "" {
			return e, nil
		} else if ctx.Err() != nil {
			return e, ctx.Err()
		}
	}
	// Resolve the link, so that the record names the build; the program is one, too, which says where its packages are.
	if dir, err := filepath.EvalSymlinks(filepath.Join(c.Cache, Name, "current")); err == nil && c.Cache != "" {
		if e, lacks, err := ask(ctx, filepath.Join(dir, "bin", "python")); err == nil && lacks == "" {
			return e, nil
		}
	}
	return environment{}, engine.SetUp(fault.New(fault.NoPython,
		"run scripts/setup huggingface, or name your Python with --huggingface-python",
		"no Python with torch and transformers on PATH or in the cache"))
}

// inside returns the Python of the container.
func (c Config) inside(ctx context.Context) (e environment, err error) {
	names := []string{"python3", "python"}
	if c.Python != "" {
		names = []string{c.Python}
	}
	if e.python, err = c.in.Which(ctx, names...); err != nil {
		return e, err
	}
	lacks := "Python"
	if e.python != "" {
		words, err := c.in.Says(ctx, e.python, "-c", question)
		if err == nil {
			e, lacks, err = answered(e.python, words)
		}
		if err != nil {
			return e, engine.SetUp(fault.Wrap(fault.NoPython, err, "name a Python program of the container",
				"%s in container %s", e.python, c.in))
		}
	}
	if lacks != "" {
		return e, engine.SetUp(fault.New(fault.NoPython,
			"use an image that has it, or name the container's Python with --huggingface-python",
			"container %s has no %s", c.in, lacks))
	}
	return e, nil
}

// ask asks a Python for its packages. lacks names the first that it has not.
func ask(ctx context.Context, path string) (e environment, lacks string, err error) {
	if path, err = filepath.Abs(path); err != nil {
		return e, "", err
	}
	words, err := child.Says(ctx, path, "-c", question)
	if err != nil {
		return environment{python: path}, "", err
	}
	return answered(path, words)
}

// answered reads what a Python prints.
func answered(path, words string) (e environment, lacks string, err error) {
	e.python = path
	var has map[string]string
	if err := json.Unmarshal([]byte(strings.TrimSpace(words)), &has); err != nil {
		return e, "", errors.New("it is not Python: it prints " + fault.OneLine(words))
	}
	e.torch, e.transformers = has["torch"], has["transformers"]
	for _, name := range []string{"torch", "transformers"} {
		if has[name] == "" {
			return e, name, nil
		}
	}
	return e, "", nil
}
