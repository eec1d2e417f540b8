//go:build unix

package main

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"llmparity/compare/comparetest"
	"llmparity/internal/host/cache"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models/gguf"
	"llmparity/internal/models/tiny"
	"llmparity/internal/record"
	"llmparity/native/openai/openaitest"
)

// TestScripts runs the sessions in testdata/script. Beside testscript's own commands they have:
//
//	fails CLASS TEXT ARG...   llmparity ARG... prints one line, an error of this class with this text, and nothing else
//	exits CODE ARG...         llmparity ARG... ends with this exit code
//	model FILE [KEY=VALUE]... writes the tiny model, with changed or added metadata
//	recorded DIR KIND...      writes the run of llama.cpp that is called so in recordings
//	server URL DOWN           sets variables: a llama-server with the tiny model as "mouse", and where no server is
//
// $CONFIGS is a folder of config.json files.
func TestScripts(t *testing.T) {
	lightTest(t)
	configs, err := filepath.Abs(configs)
	check(t, err)
	testscript.Run(t, testscript.Params{
		Dir:             "testdata/script",
		ContinueOnError: true,
		Setup: func(env *testscript.Env) error {
			for _, name := range []string{"GORACE", "LLMPARITY_CHROME"} {
				env.Setenv(name, os.Getenv(name))
			}
			env.Setenv(cache.Variable, cache.Dir(os.Getenv))
			env.Setenv("CONFIGS", configs)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"fails": scriptFails, "exits": scriptExits, "model": scriptModel,
			"recorded": func(ts *testscript.TestScript, _ bool, args []string) {
				var engines []comparetest.Engine
				for _, kind := range args[1:] {
					engines = append(engines, recordings[kind]())
				}
				root, dir := t.TempDir(), ts.MkAbs(args[0])
				ts.Check(os.MkdirAll(filepath.Dir(dir), 0o755))
				ts.Check(os.Rename(comparetest.Write(t, root, filepath.Base(args[0]), engines...), dir))
			},
			"server": func(ts *testscript.TestScript, _ bool, args []string) {
				ts.Setenv(args[0], openaitest.Llama(t, tinyOf(t).Path, "-np", "1", "-c", "512", "--alias", "mouse").URL)
				ts.Setenv(args[1], "http://127.0.0.1:"+strconv.Itoa(openaitest.FreePort(t)))
			},
		}})
}

// recordings are launches for the command recorded.
var recordings = map[string]func() comparetest.Engine{
	"native": func() comparetest.Engine { return comparetest.Native(8) },
	"once":   func() comparetest.Engine { return comparetest.Native(1) },
	"slower": func() comparetest.Engine {
		e := comparetest.Native(8)
		e.Token = e.Token * 5 / 4
		return e
	},
	"failing": func() comparetest.Engine {
		e := comparetest.Native(8)
		e.Failing = map[int]record.Class{2: "device-lost"}
		return e
	},
	"crowded": func() comparetest.Engine {
		e := comparetest.Native(8)
		e.Warnings = []record.Warning{{Code: record.ProgramShared, Text: "a server runs outside the launch, too"}}
		return e
	},
	"predicted": func() comparetest.Engine { return predicted(0.5) },
	"hostile": func() comparetest.Engine {
		e := comparetest.Native(1)
		e.Cell.Engine = "exec:x/../../../out|\x00é"
		return e
	},
	"shapeless": func() comparetest.Engine {
		e := comparetest.Native(1)
		e.Prediction = &record.Prediction{Absent: "the model's shape is not known"}
		return e
	},
}

// scriptExits runs the program, which must end with an exit code.
func scriptExits(ts *testscript.TestScript, _ bool, args []string) {
	if code := exitCode(ts, args[1:]); strconv.Itoa(code) != args[0] {
		ts.Fatalf("exit code %d", code)
	}
}

// exitCode runs the program to its end, and keeps what it prints for stdout and stderr.
func exitCode(ts *testscript.TestScript, args []string) int {
	err := ts.Exec("llmparity", args...)
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode()
	}
	ts.Check(err)
	return 0
}

// scriptFails runs the program, which must refuse its arguments.
func scriptFails(ts *testscript.TestScript, _ bool, args []string) {
	class, text := fault.Kind(args[0]), args[1]
	code := exitCode(ts, args[2:])
	out, line := ts.ReadFile("stdout"), strings.TrimPrefix(ts.ReadFile("stderr"), convertingTiny)
	if slices.Contains(args, "--json") {
		var f failure
		ts.Check(json.Unmarshal([]byte(out), &f))
		if f.Class != class || f.Code != code || !strings.Contains(f.Error, text) {
			ts.Fatalf("it is not the JSON of class %s with %q", class, text)
		}
		out = ""
	}
	if code != class.ExitCode() || out != "" || strings.Count(line, "\n") != 1 || len(line) > 600 ||
		!strings.HasPrefix(line, "llmparity: "+string(class)+": ") || !strings.Contains(line, text) {
		ts.Fatalf("exit code %d, want one line of class %s with %q, and nothing else", code, class, text)
	}
}

// scriptModel writes the tiny model, some of whose metadata differ: a number is one of 16 bits.
func scriptModel(ts *testscript.TestScript, _ bool, args []string) {
	path := ts.MkAbs(args[0])
	ts.Check(tiny.WriteFile(path))
	var changed []gguf.Entry
	for _, arg := range args[1:] {
		key, text, _ := strings.Cut(arg, "=")
		e := gguf.Entry{Key: key, Value: text}
		if n, err := strconv.ParseUint(text, 10, 16); err == nil {
			e.Value = uint16(n)
		}
		changed = append(changed, e)
	}
	if changed != nil {
		ts.Check(rewritten(path, path, changed...))
	}
}
