package llamacpp

import (
	"os"
	"path/filepath"
	"testing"
)

func TestLibrariesBesideAProgramAreSummedUp(t *testing.T) {
	root := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	program := write("bin/llama-server", "a program")
	write("lib/libstdc++.so.6", "somebody else's")
	if sum := LibrariesSHA256(program); sum != "" {
		t.Errorf("%q of no library", sum)
	}
	ggml := write("lib/libggml-cpu.so.0", "one")
	write("bin/libllama.so", "two")
	before := LibrariesSHA256(program)
	if len(before) != 64 {
		t.Fatalf("%q", before)
	}
	if err := os.Symlink(ggml, filepath.Join(root, "lib", "libggml-cpu.so")); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(root, "llama-server")
	if err := os.Symlink(program, link); err != nil {
		t.Fatal(err)
	}
	if sum := LibrariesSHA256(link); sum != before {
		t.Errorf("by another name of program and library: %q, was %q", sum, before)
	}
	write("lib/libggml-cpu.so.0", "another")
	if sum := LibrariesSHA256(program); sum == before || sum == "" {
		t.Errorf("of another library: %q, was %q", sum, before)
	}
}
