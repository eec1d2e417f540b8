//go:build slow

package browser

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"llmparity/internal/host/machine"
	"llmparity/internal/host/sample/truth"
)

// updateTruth is the environment variable that rewrites the table of docs/reference/accuracy.md.
const updateTruth = "LLMPARITY_UPDATE_TRUTH"

// Which source sees which kind of memory, in a page and in processes, three times each.
func TestTruthOfThisMachine(t *testing.T) {
	const repeats = 3
	page := findTruth(t, took, repeats)
	processes := truth.InProcesses(t, func() *exec.Cmd {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), takesMemory+"=1")
		return cmd
	}, took, repeats)
	for _, c := range processes.Contradictions() {
		t.Error(c)
	}
	if os.Getenv(updateTruth) != "" && !t.Failed() {
		m := machine.Describe(t.Context(), 0)
		kernel, _, _ := strings.Cut("kernel "+m.Kernel, "-") // followed by its builder
		truth.Update(t, "../docs/reference/accuracy.md",
			fmt.Sprintf("%s (%s), %s, %d cores", m.OS, kernel, m.CPU, m.Cores), repeats, page, processes)
	}
}
