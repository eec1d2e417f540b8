//go:build slow

package browser

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"llmparity/internal/check"
	"llmparity/internal/machine"
	"llmparity/internal/truth"
)

// updateTruth is the environment variable that rewrites the table of docs/reference/accuracy.md.
const updateTruth = "LLMPARITY_UPDATE_TRUTH"

// Which source sees which kind of memory, in a page and in processes, three times each.
func TestTruthOfThisMachine(t *testing.T) {
	const repeats = 3
	m := machine.Describe(t.Context(), machine.Options{})
	kernel, _, _ := strings.Cut("kernel "+m.Kernel, "-") // followed by its builder
	r := truth.Report{At: time.Now(), Size: took, Repeats: repeats,
		Machine: fmt.Sprintf("%s (%s), %s, %d cores", m.OS, kernel, m.CPU, m.Cores)}
	page, err := FindTruth(t.Context(), Config{}, took, repeats)
	check.Err(t, err)
	processes, err := truth.InProcesses(t.Context(), func() *exec.Cmd {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), takesMemory+"=1")
		return cmd
	}, took, repeats)
	check.Err(t, err)
	r.Parts = []truth.Part{page, processes}
	for _, c := range r.Contradictions() {
		t.Error(c)
	}
	if os.Getenv(updateTruth) == "" || t.Failed() {
		return
	}
	const path = "../docs/reference/accuracy.md"
	text, err := os.ReadFile(path)
	check.Err(t, err)
	now, err := truth.Replace(string(text), r.Markdown())
	check.Err(t, err)
	check.Err(t, os.WriteFile(path, []byte(now), 0o644))
}
