package doctor

import (
	"strings"
	"testing"

	"llmparity/internal/child"
	"llmparity/internal/engine"
	"llmparity/internal/fault"
)

// A program that does not answer in time is not missing, but what needs it cannot be promised.
func TestSilentPartsAreNotCalledMissing(t *testing.T) {
	var d Diagnosis
	d.sort([]engine.Part{{Name: "emscripten", Err: fault.Wrap(fault.NoEmscripten, child.NoAnswer{},
		"the machine may be busy: try again", "emcc")}})
	rows := d.partRows()
	if len(rows) != 1 || rows[0][0] != "unknown" || strings.Contains(rows[0][1], "setup") ||
		!strings.HasSuffix(rows[0][1], "emcc: no answer within 30s; the machine may be busy: try again") {
		t.Errorf("%q", rows)
	}
	if err := d.Err(); d.ExitCode != 4 || fault.Of(err) != fault.NoEmscripten ||
		!strings.HasPrefix(err.Error(), "something did not answer: ") {
		t.Errorf("exit code %d, %v", d.ExitCode, err)
	}
}
