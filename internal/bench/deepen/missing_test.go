package deepen

import (
	"os"
	"strings"
	"testing"
	"time"

	"llmparity/internal/depth"
	"llmparity/internal/host/child"
)

func TestSamplersAreMissing(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if _, err := sampling(t.Context(), []int{os.Getpid()}); err == nil ||
		err.Error() != "stacks are sampled with perf, which is not here; install it (Debian: apt install linux-perf)" {
		t.Errorf("perf: %v", err)
	}
	if _, err := pySpy([]int{os.Getpid()}); err == nil || !strings.Contains(err.Error(), "run `scripts/setup py-spy`") {
		t.Errorf("py-spy: %v", err)
	}
	if len(child.Scratches(os.Getpid())) > 0 {
		t.Error("a folder is left")
	}
}

func TestUnnamedFunctions(t *testing.T) {
	s := depth.NewStacks(time.Second)
	s.Add([]string{"main", "ggml_vec_dot_f32"}, 70)
	s.Add([]string{"main", "[vdso]"}, 5)
	if got := unnamed(s); len(got) != 0 {
		t.Errorf("%q", got)
	}
	s.Add([]string{"[llama-server]"}, 25)
	if got := unnamed(s); len(got) != 1 || !strings.HasPrefix(got[0], "25% of samples are in llama-server, which has no symbols") {
		t.Errorf("%q", got)
	}
}
