package truth

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"llmparity/internal/check"
)

// asChild makes the test binary the allocating child.
const asChild = "LLMPARITY_TRUTH_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(asChild) != "" {
		if err := Allocate(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func allocator() *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), asChild+"=1")
	return cmd
}

func TestProcessSources(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	part, err := InProcesses(t.Context(), allocator, 64<<20, 1)
	check.Err(t, err)
	t.Log("\n" + part.Matrix.String())
	for _, c := range part.Matrix.Contradictions() {
		t.Error(c)
	}
	for _, l := range part.Matrix.Lines {
		for i, c := range l.Cells {
			if c.Expected != nil && c.Verdict == Absent {
				t.Errorf("%s %s: not available for %s", l.Who, l.Figure, part.Matrix.Kinds[i].Name)
			}
		}
	}
	if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

// A process that claims to allocate memory and does not contradicts the expectation.
func TestBlindSourcesAreReported(t *testing.T) {
	liar := func() *exec.Cmd { return exec.Command("sh", "-c", "while read order; do echo done; done") }
	part, err := InProcesses(t.Context(), liar, 32<<20, 1)
	check.Err(t, err)
	got := part.Matrix.Contradictions()
	const want = "process USS moved by 0.00 MiB for 32 MiB of malloc, want 31.04 to 32.96"
	if !slices.Contains(got, want) || slices.ContainsFunc(got, func(c string) bool {
		return strings.Contains(c, "USS moved by 0.00 MiB for 32 MiB of malloc, untouched")
	}) {
		t.Errorf("%q", got)
	}
}

// Expectations apply only to their platforms.
func TestContradictions(t *testing.T) {
	table := Table{Kinds: []Kind{{ID: "cpu", Name: "pages"}, {ID: "gpu", Name: "buffers", gpu: true}}, Rows: []Row{
		{ID: "a", Who: "process", Figure: "RSS", where: onLinux,
			wants: map[string]Want{"cpu": all, "gpu": between(0, 0.5)}},
		{ID: "b", Who: "page", Figure: "ledger", wants: map[string]Want{"gpu": exact}},
		{ID: "c", Who: "process", Figure: "VMS"},
	}}
	moved := map[string]map[string][]float64{"cpu": {"a": {10, 60, 30}, "b": {0.5}},
		"gpu": {"a": {36}, "b": {64.0001}, "c": {1000}}}
	aRSS := "process RSS moved by 30.00 MiB for 64 MiB of pages, want 62.08 to 65.92"
	aBuffers := "process RSS moved by 36.00 MiB for 64 MiB of buffers, want -3.00 to 33.92"
	bBuffers := "page ledger moved by 64.00 MiB for 64 MiB of buffers, want 64.00 to 64.00"
	for p, want := range map[Platform][]string{
		{OS: "linux", Software: true}: {aRSS, aBuffers, bBuffers},
		{OS: "linux"}:                 {aRSS, bBuffers},
		{OS: "darwin"}:                {bBuffers},
	} {
		m := table.matrix(p, 64, moved)
		if got := m.Contradictions(); !slices.Equal(got, want) {
			t.Errorf("%v: %q, want %q", p, got, want)
		}
		if got := m.Lines[2].Cells; got[0].Verdict != Absent || got[0].text() != "-" ||
			got[1].text() != "1000.0 other" {
			t.Errorf("%v: %+v", p, got)
		}
	}
}

// The block in the documentation has the same tables, columns and rows, whatever the numbers.
func TestDocumentedTableIsCurrent(t *testing.T) {
	const path = "../../docs/reference/accuracy.md"
	text, err := os.ReadFile(path)
	check.Err(t, err)
	_, block, _ := strings.Cut(string(text), BlockBegin)
	block, _, ends := strings.Cut(block, BlockEnd)
	if !ends {
		t.Fatalf("%s: %v", path, errNoBlock)
	}
	got, want := Shape(block), Shape(Empty().Markdown())
	if !slices.Equal(got, want) {
		t.Errorf("%s has\n%s\nwant\n%s\n(LLMPARITY_UPDATE_TRUTH=1 go test -tags slow -run Truth ./browser)", path,
			strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if len(want) < len(InBrowser().Rows)+len(Processes().Rows) {
		t.Errorf("a shape of %d lines", len(want))
	}
}

func TestReplace(t *testing.T) {
	block := Empty().Markdown()
	page := "# Title\n\n" + BlockBegin + "\nold\n" + BlockEnd + "\n\nmore\n"
	got, err := Replace(page, block)
	if err != nil || got != "# Title\n\n"+block+"\nmore\n" {
		t.Errorf("%v: %q", err, got)
	}
	if again, err := Replace(got, block); err != nil || again != got {
		t.Errorf("replacing it by itself changes it: %v", err)
	}
	for _, page := range []string{"", BlockBegin, BlockEnd, BlockEnd + BlockBegin, page + page} {
		if got, err := Replace(page, block); err == nil {
			t.Errorf("%q becomes %q", page, got)
		}
	}
}
