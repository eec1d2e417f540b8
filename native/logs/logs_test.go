package logs_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"llmparity/internal/record"
	"llmparity/native/logs"
)

func TestLinesAreWholeAndBounded(t *testing.T) {
	const text = "one\n\nthree is longer\r\nfour\nfive"
	want := []string{"one", "", "three is", "four"}
	for size := range len(text) {
		var got []string
		l := logs.Lines{Max: 8, Take: func(line string) { got = append(got, line) }}
		for part := range slices.Chunk([]byte(text), size+1) {
			if n, err := l.Write(part); n != len(part) || err != nil {
				t.Fatalf("Write = %d, %v", n, err)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%d bytes at a time: %q, want %q", size+1, got, want)
		}
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

func TestTeeContinuesWhenOneWriterFails(t *testing.T) {
	var a, b strings.Builder
	if n, err := (logs.Tee{&a, full{}, &b}).Write([]byte("text")); n != 4 || err != nil || a.String() != "text" ||
		b.String() != "text" {
		t.Errorf("%d, %v: %q and %q", n, err, a.String(), b.String())
	}
}

func TestLastWords(t *testing.T) {
	for want, lines := range map[string][]string{"it said nothing": nil, "a | b": {"a", "b"},
		"b | c | d": {"a", "b", "c", "d"}} {
		if got := logs.LastWords(lines); got != want {
			t.Errorf("%q: %q, want %q", lines, got, want)
		}
	}
}

func TestClassOf(t *testing.T) {
	for line, want := range map[string]record.Class{
		"CUDA error: out of memory":                                       record.OOM,
		"terminate called after throwing an instance of 'std::bad_alloc'": record.OOM, "MemoryError": record.OOM,
		"ggml_aligned_malloc: insufficient memory (attempted to allocate 9 MB) failed to allocate": record.OOM,
		"Cannot allocate memory": record.OOM,
		"model requires more system memory (9 GiB) than is available": record.OOM, "Segmentation fault": record.Crash,
		"": record.Crash,
	} {
		if got := logs.ClassOf("loading", line); got != want {
			t.Errorf("%q: %s, want %s", line, got, want)
		}
	}
}
