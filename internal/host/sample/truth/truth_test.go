package truth

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"llmparity/internal/kit/check"
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
	m := InProcesses(t, allocator, 64<<20, 1)
	t.Logf("\n%s", m)
	for _, c := range m.Contradictions() {
		t.Error(c)
	}
}

// A process that claims to allocate memory and does not contradicts the expectation.
func TestBlindSourcesAreReported(t *testing.T) {
	liar := func() *exec.Cmd { return exec.Command("sh", "-c", "while read order; do echo done; done") }
	got := InProcesses(t, liar, 32<<20, 1).Contradictions()
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
			wants: map[string]want{"cpu": all, "gpu": between(0, 0.5)}},
		{ID: "b", Who: "page", Figure: "ledger", wants: map[string]want{"gpu": exact}},
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
		if got := fmt.Sprint(m.lines[2].cells); got != "[- 1000.0 other]" {
			t.Errorf("%v: %s", p, got)
		}
	}
}

// The tables in the documentation have the same rows and columns as the generated ones, whatever the numbers.
func TestDocumentedTableIsCurrent(t *testing.T) {
	const path = "../../../../docs/reference/accuracy.md"
	measured := regexp.MustCompile(`-?[\d.]+ (yes|no|other)( !)?`)
	lines := func(text string) (out []string) {
		for _, line := range regexp.MustCompile(`(?m)^(\|.*|\*\*.*\*\*)`).FindAllString(text, -1) {
			out = append(out, measured.ReplaceAllString(line, "-"))
		}
		return out
	}
	got := lines(documented.FindString(string(check.Read(t, path))))
	want := lines(tables(InBrowser().matrix(Platform{}, 64, nil), Processes().matrix(Platform{}, 64, nil)))
	if !slices.Equal(got, want) {
		t.Errorf("%s has\n%s\nwant\n%s\n(LLMPARITY_UPDATE_TRUTH=1 go test -tags slow -run Truth ./browser)", path,
			strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if len(want) < len(InBrowser().Rows)+len(Processes().Rows) {
		t.Errorf("a table of %d lines", len(want))
	}
}
