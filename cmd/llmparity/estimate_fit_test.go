package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"llmparity/internal/fit"
	"llmparity/internal/mlc"
	"llmparity/internal/schematest"
	"llmparity/internal/tiny"
)

// answerTo returns the first line of an estimate.
func answerTo(t *testing.T, args ...string) string {
	t.Helper()
	out, errs, code := called(append([]string{"estimate"}, args...)...)
	if code != 0 || errs != "" {
		t.Fatalf("%v: exit code %d, %s", args, code, errs)
	}
	line, _, _ := strings.Cut(out, "\n")
	return line
}

func TestEstimateAnswersFirst(t *testing.T) {
	t.Setenv("LLMPARITY_CACHE", t.TempDir())
	for _, row := range tableOf(t, "estimates.txt", 2) {
		args := strings.ReplaceAll(row[0], "configs/", configs+"/")
		like := strings.ReplaceAll(regexp.QuoteMeta(row[1]), "~", "[0-9.]+( [MG]iB)?")
		if got := answerTo(t, strings.Fields(args)...); !regexp.MustCompile("^" + like + "$").MatchString(got) {
			t.Errorf("%s: %q, want %q", args, got, row[1])
		}
	}
}

func TestEstimateOfUnconvertibleGGUF(t *testing.T) {
	path := filepath.Join(t.TempDir(), "strange.gguf")
	check(t, tiny.WriteFile(path))
	text := readFile(t, path)
	check(t, os.WriteFile(path, []byte(strings.ReplaceAll(text, "llama", "alpac")), 0o600))
	args := []string{path, "--engine", "webllm", "--adapter", "swiftshader", "--ram-gb", "4"}
	if line := answerTo(t, args...); !strings.HasPrefix(line, "cannot run here: WebLLM: ") ||
		!strings.Contains(line, "alpac") {
		t.Error(line)
	}
}

// The lists of a package replace what the catalogue states.
func TestEstimateOfCatalogueModel(t *testing.T) {
	own := t.TempDir()
	t.Setenv("LLMPARITY_CACHE", own)
	const id = "SmolLM2-135M-Instruct-q0f32-MLC"
	gguf, mirror := filepath.Join(t.TempDir(), "tiny.gguf"), t.TempDir()
	check(t, tiny.WriteFile(gguf))
	place := filepath.Join(mirror, "mlc-ai", id, "resolve", "main")
	if _, err := mlc.Write(t.Context(), gguf, place, mlc.Options{}); err != nil {
		t.Fatal(err)
	}
	estimated := func(args ...string) (j fit.Document) {
		t.Helper()
		out, errs, code := called(append(
			[]string{"estimate", id, "--adapter", "swiftshader", "--ram-gb", "4", "--json"}, args...)...)
		if err := json.Unmarshal([]byte(out), &j); err != nil || code != 0 {
			t.Fatalf("exit code %d, %v, %s", code, err, errs)
		}
		schematest.Valid(t, "estimate", []byte(out))
		return j
	}
	weights := func(j fit.Document) int64 {
		for _, c := range j.Components {
			if c.Name == "model_weights" {
				return c.Best
			}
		}
		return 0
	}
	says := func(j fit.Document, text string) {
		t.Helper()
		if !strings.Contains(strings.Join(j.Warnings, "\n"), text) {
			t.Errorf("%q is missing: %q", text, j.Warnings)
		}
	}
	stated := estimated()
	if weights(stated) != 0 || stated.Fits == nil || !*stated.Fits || *stated.Available != 4<<30 ||
		*stated.Spare <= 0 || stated.Model.Context != 4096 {
		t.Errorf("%+v", stated)
	}
	says(stated, "WebLLM's catalogue")
	from := estimated("--mirror", mirror, "--context", "512")
	if weights(from) != 4*426624 || from.Model.Context != 512 || *from.Spare <= *stated.Spare {
		t.Errorf("%+v", from)
	}
	says(from, "the package's lists at "+mirror)
	if without := estimated("--mirror", t.TempDir()); *without.Spare != *stated.Spare {
		t.Errorf("empty mirror: %+v", without)
	}
}

func TestEstimateAnswersInJSON(t *testing.T) {
	model := filepath.Join(configs, "llama-3.1-8b.json")
	for args, want := range map[string]string{
		"--engine llamacpp --quantization q4_0 --ram-gb 8": "true",
		"--engine llamacpp --quantization q4_0 --ram-gb 4": "false needs about 5 GiB, 4 GiB available",
		"--engine webllm --quantization q4f16_1 --adapter swiftshader": "false needs f16; SwiftShader has no shader-f16; " +
			"use --quantization q4f32_1",
	} {
		out, errs, code := called(append([]string{"estimate", model, "--json"}, strings.Fields(args)...)...)
		var j struct {
			Fits      *bool
			Available int64 `json:"available_bytes"`
			Spare     int64 `json:"spare_bytes"`
			Reason    string
		}
		if err := json.Unmarshal([]byte(out), &j); err != nil || code != 0 {
			t.Fatalf("%s: exit code %d, %v, %s", args, code, err, errs)
		}
		fits, reason, _ := strings.Cut(want, " ")
		if j.Fits == nil || *j.Fits != (fits == "true") || j.Reason != reason || j.Available <= 0 ||
			(j.Spare > 0) != (fits == "true") &&
				!strings.Contains(reason, "f16") {
			t.Errorf("%s: %+v, want %s", args, j, want)
		}
	}
}
