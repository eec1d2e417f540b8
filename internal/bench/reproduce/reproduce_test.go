package reproduce

import (
	"strconv"
	"strings"
	"testing"

	"llmparity/internal/record"
)

// A sweep launches an engine in several ways: the first is not all that it was run with.
func TestPlanListsArgumentsOfSetups(t *testing.T) {
	was := &record.Run{}
	for setup := 1; setup <= mostArguments+2; setup++ {
		was.Cells = append(was.Cells, record.Cell{ID: setup, Engine: "e", Setup: setup})
		info := &record.EngineInfo{Name: "e", Args: []string{"-np", strconv.Itoa(setup)},
			Policy: map[string]string{"mmap": "on"}}
		if setup == 2 {
			info.Policy["parallel"] = "2"
		}
		for range 2 {
			was.Attempts = append(was.Attempts,
				&record.Attempt{Beginning: record.Beginning{Cell: setup}, Status: record.OK,
					Events: []record.Event{{Engine: info}}})
		}
	}
	text := again(was, nil)
	for line, want := range map[string]int{"#   mmap: on\n": 1, "#   parallel: not reported or 2\n": 1,
		"#   arguments in setup 1: -np 1\n":   1,
		"#   arguments in setup 16: -np 16\n": 1, "#   the record has the arguments of 2 more setups\n": 1,
		"#   arguments in": mostArguments} {
		if got := strings.Count(text, line); got != want {
			t.Errorf("%q is there %d times:\n%s", line, got, text)
		}
	}
	was.Cells, was.Attempts = was.Cells[:1], was.Attempts[:2]
	if text := again(was, nil); !strings.Contains(text, "#   arguments: -np 1\n") {
		t.Errorf("of one setup:\n%s", text)
	}
}
