package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"llmparity/internal/tiny"
)

func TestInfoSaysWhatAModelIs(t *testing.T) {
	cmd := program(t, "model", "info", "tiny.gguf", "--json")
	if err := tiny.WriteFile(filepath.Join(cmd.Dir, "tiny.gguf")); err != nil {
		t.Fatal(err)
	}
	stdout, stderr, code := output(t, cmd)
	var info modelInfo
	if err := json.Unmarshal([]byte(stdout), &info); err != nil || code != 0 {
		t.Fatalf("exit code %d, %v\n%s", code, err, stderr)
	}
	// Two layers with two heads of 32 for keys and two for values, four bytes each.
	if info.KVBytesPerToken != 2*2*2*32*4 || info.SHA256 != tiny.SHA256 || info.Parameters != 426624 || info.BytesByType["f32"] != 4*426624 {
		t.Errorf("%+v", info)
	}
	for engine, why := range info.Engines {
		if why != "" {
			t.Errorf("%s can't run it: %s", engine, why)
		}
	}
	if len(info.Engines) != 2 || !strings.Contains(info.Tokenizer, "gpt-2") {
		t.Errorf("%+v", info)
	}
}
