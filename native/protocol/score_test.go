package protocol

import (
	"math"
	"strings"
	"testing"
)

func TestScoreLines(t *testing.T) {
	for name, c := range map[string]struct{ line, wrong string }{
		"right":         {`{"id":3,"event":"token","token":7,"logprob":-2.5,"top":[{"token":5,"logprob":-0.5},{"token":7,"logprob":-2.5}]}`, ""},
		"too small":     {`{"id":3,"event":"token","token":7,"top":[{"token":5,"logprob":-0.5},{"token":8,"logprob":-2.5}]}`, ""},
		"another token": {`{"id":3,"event":"token","token":8,"logprob":-2.5,"top":[]}`, `is not of "token" 7`},
		"no token":      {`{"id":3,"event":"token","logprob":-2.5,"top":[]}`, `is not of "token" 7`},
		"one candidate": {`{"id":3,"event":"token","token":7,"logprob":-2.5,"top":[{"token":5,"logprob":-0.5}]}`,
			"at least 2"},
		"none of them": {`{"id":3,"event":"token","token":7,"logprob":-2.5}`, "at least 2"},
		"half a candidate": {`{"id":3,"event":"token","token":7,"top":[{"token":5},{"token":7,"logprob":-2.5}]}`,
			`lacks its "token" or "logprob"`},
		"out of order":   {`{"id":3,"event":"token","token":7,"top":[{"token":5,"logprob":-3},{"token":7,"logprob":-2.5}]}`, "likelier than the one before it"},
		"no probability": {`{"id":3,"event":"token","token":7,"logprob":0.5,"top":[{"token":5,"logprob":-1},{"token":7,"logprob":-2.5}]}`, "forced token is 0.5"},
	} {
		m, err := parse([]byte(c.line))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		sc, err := m.score(4, 7)
		if c.wrong != "" {
			if err == nil || !strings.Contains(err.Error(), c.wrong) {
				t.Errorf("%s: %v, want %q", name, err, c.wrong)
			}
			continue
		}
		if err != nil || sc.Position != 4 || sc.Forced != 7 || sc.Chosen() != 5 || len(sc.Top) != 2 ||
			math.IsNaN(sc.LogProb) != (name == "too small") {
			t.Errorf("%s: %+v, %v", name, sc, err)
		}
	}
	hello := message{Name: "a", Version: "1", Device: &device{Class: "cpu"}, Caps: caps{Scores: true}}
	if err := hello.checkHello(""); err == nil || !strings.Contains(err.Error(), `"scores" without "ids"`) {
		t.Errorf("an engine that scores and tells no ids: %v", err)
	}
}
