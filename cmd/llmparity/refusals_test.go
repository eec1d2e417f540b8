//go:build unix

package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"llmparity/assets/plans"
	"llmparity/compare/comparetest"
	"llmparity/internal/kit/fault"
	"llmparity/internal/kit/whole"
	"llmparity/internal/models/gguf"
	"llmparity/internal/models/tiny"
	"llmparity/internal/record"
	"llmparity/native/openai/openaitest"
)

// A refusal is one line with the class of the error. Nothing was printed, and no run was begun.
func TestRefusals(t *testing.T) {
	rows := tableOf(t, "refusals.txt", 3)
	refusedFiles(t)
	server := openaitest.Llama(t, "in.gguf", "-np", "1", "-c", "512", "--alias", "mouse")
	places := strings.NewReplacer("SERVER", server.URL, "DOWN",
		fmt.Sprintf("http://127.0.0.1:%d", openaitest.FreePort(t)))
	for _, row := range rows {
		t.Run(row[1], func(t *testing.T) {
			out, errs, code := called(shellWords(places.Replace(row[1]))...)
			errs = strings.TrimPrefix(errs, convertingTiny)
			want := fault.Kind(row[0])
			if strings.Contains(row[1], " --json") {
				f := decoded[failure](t, out)
				if f.Class != want || f.Code != code || !strings.Contains(f.Error, row[2]) {
					t.Errorf("JSON %s", out)
				}
				out = ""
			}
			if code != want.ExitCode() || out != "" || strings.Count(errs, "\n") != 1 ||
				!strings.HasPrefix(errs, "llmparity: "+row[0]+": ") || !strings.Contains(errs, row[2]) {
				t.Errorf("exit code %d, want one line of class %s with %q:\n%s%s", code, want, row[2], out, errs)
			}
			for _, made := range []string{"results/latest", "out", "random.gguf"} {
				if _, err := os.Lstat(made); err == nil {
					t.Errorf("%s was written", made)
				}
			}
		})
	}
	for name, mode := range map[string]os.FileMode{"pipe.gguf": os.ModeNamedPipe, "null": os.ModeSymlink} {
		if info, err := os.Lstat(name); err != nil || info.Mode()&mode == 0 {
			t.Errorf("%s was replaced: %v", name, err)
		}
	}
}

// refusedFiles changes to a folder with the files that the table of refusals names.
func refusedFiles(t *testing.T) {
	t.Helper()
	configs, err := filepath.Abs(configs)
	check(t, err)
	t.Chdir(t.TempDir())
	check(t, os.Symlink(configs, "configs"))
	check(t, os.WriteFile("tab.yaml", []byte("name: x\n\tmodel: tiny\nprompts: [a]\n"), 0o600))
	check(t, os.Symlink(os.DevNull, "null"))
	check(t, tiny.WriteFile("in.gguf"))
	model := readFile(t, "in.gguf")
	check(t, os.Mkdir("empty", 0o755))
	for name, text := range map[string]string{"plan.yaml": string(plans.Init),
		"versioned.yaml":  "engines: [webllm]\nmodel: tiny\nprompts: [the]\nmax_tokens: 2\nwebllm_version: 0.2.80\n",
		"bundle.yaml":     "engines: [webllm]\nmodel: tiny\nprompts: [the]\nmax_tokens: 2\nwebllm_bundle: none.js\n",
		"library.yaml":    "engines: [webllm]\nmodel: tiny\nprompts: [the]\nmax_tokens: 2\nmodel_lib: none.wasm\n",
		"other/plan.yaml": "name: of another tool\n", "broken/run.json": "{",
		"mamba/config.json": `{"model_type":"mamba9"}`, "text": "hello", "void": "", "void.gguf": "",
		"some.wasm": "\x00asm\x01\x00\x00\x00", "some.gguf": "GGUF", "short.gguf": model[:len(model)-5000],
		"header.gguf": model[:100], "old.js": "TVMWasmPackedCFunc",
		"wrong.csv": "timestamp;label;rss_mb\n1705314600;a;1,5\n", "profile.json": calculatedProfile} {
		put(t, ".", name, text)
	}
	for name, entry := range map[string]gguf.Entry{
		"grok":      {Key: "general.architecture", Value: "grok"},
		"adapter":   {Key: "general.type", Value: "adapter"},
		"part":      {Key: "split.count", Value: uint16(3)},
		"tokenizer": {Key: "tokenizer.ggml.pre", Value: "falcon3"}} {
		rewrite(t, "in.gguf", name+".gguf", entry)
	}
	check(t, whole.Write("alien.gguf", func(w io.Writer) error {
		return gguf.Write(w, []gguf.Entry{{Key: "general.architecture", Value: "grok"}}, nil)
	}))
	for _, name := range []string{"pipe", "pipe.gguf"} {
		check(t, syscall.Mkfifo(name, 0o600))
	}
	check(t, os.Rename(comparetest.Write(t, t.TempDir(), "run", comparetest.Native(1)), "run"))
	comparetest.Write(t, "before", "before", comparetest.Native(1))
	absent := comparetest.Native(1)
	absent.Prediction = &record.Prediction{Absent: "the model's shape is not known"}
	comparetest.Write(t, "before", "absent", absent)
}
