package resolve

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"llmparity/internal/kit/check"
	"llmparity/internal/record"
)

// measured is the duration of a measure phase with its computed prompt tokens and generated tokens.
// first is the time of the prompt; 0: its tokens have no times.
type measured struct{ seconds, prompt, generated, first float64 }

// pastRun is a run with an attempt for each measurement of so many tokens, each of which took two seconds beside it.
func pastRun(t *testing.T, attempts ...measured) string {
	t.Helper()
	out := t.TempDir()
	lines := []string{`{"cell":{"id":1,"engine":"e","model":{"name":"m"}}}`}
	tokens := []string{"cell,attempt,request,index,id,t_ns"}
	at := 0.0
	ns := func(s float64) int64 { return int64(math.Round(s * 1e9)) }
	for i, m := range attempts {
		lines = append(lines, fmt.Sprintf(`{"t_ns":%d,"attempt":%d,"begin":{"cell":1}}`, ns(at), i+1),
			fmt.Sprintf(`{"attempt":%d,"request":{"id":1,"phase":"measure","sent_ns":%d,"prompt_tokens":%d,"cached_tokens":5,"tokens":%d}}`,
				i+1, ns(at+1), int(m.prompt)+5, int(m.generated)),
			fmt.Sprintf(`{"attempt":%d,"phase":{"name":"measure","begin_ns":%d,"end_ns":%d}}`, i+1, ns(at+1),
				ns(at+1+m.seconds)),
			fmt.Sprintf(`{"t_ns":%d,"attempt":%d,"end":{"status":"ok"}}`, ns(at+m.seconds+2), i+1))
		for n := range int(m.generated) {
			one := 0.0
			if m.first > 0 {
				one = m.first + (m.seconds-m.first)*float64(n)/m.generated
			}
			tokens = append(tokens, fmt.Sprintf("1,%d,1,%d,7,%d", i+1, n, ns(at+1+one)))
		}
		at += m.seconds + 2
	}
	dir := filepath.Join(out, "run")
	check.Err(t, os.Mkdir(dir, 0o700))
	for name, text := range map[string]string{"run.json": `{"schema":"` + record.Schema + `"}`,
		"environment.json": "{}", "plan.yaml": "", "journal.jsonl": strings.Join(lines, "\n") + "\n",
		"tokens.csv": strings.Join(tokens, "\n") + "\n"} {
		check.Err(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return out
}

// What a plan takes is predicted of its prompts as well as of what it generates, whatever lengths earlier runs had.
func TestTimePredictionIncludesPrompts(t *testing.T) {
	const perPrompt, perGenerated = promptShare / 10, 0.1
	of := func(prompt, generated float64) measured {
		return measured{prompt*perPrompt + generated*perGenerated, prompt, generated, 0}
	}
	h := pastRuns(pastRun(t, of(10, 40), of(500, 10), of(500, 40)))
	if got, known := h.of(pastKey{"e", "m"}, 3, 2000, 30); !known ||
		math.Abs(got-(3*2+2000*perPrompt+30*perGenerated)) > 1e-6 {
		t.Errorf("%g s", got)
	}
	// equal lengths: only the total is known
	h = pastRuns(pastRun(t, of(100, 10), of(100, 10)))
	like, _ := h.of(pastKey{"e", "m"}, 1, 100, 10)
	long, _ := h.of(pastKey{"e", "m"}, 1, 1000, 10)
	if math.Abs(like-4.25) > 1e-6 || long < 2*like {
		t.Errorf("%g s for what was measured, %g s for prompts that are ten times as long", like, long)
	}
	// the times of tokens say what a prompt takes: here as much as what is generated
	h = pastRuns(pastRun(t, measured{11, 100, 10, 10}))
	if got, _ := h.of(pastKey{"e", "m"}, 1, 1000, 10); math.Abs(got-103) > 1e-6 {
		t.Errorf("%g s, want 103", got)
	}
}

// Scoring is predicted by windows that were scored, else by how fast tokens came.
func TestScoringIsPredicted(t *testing.T) {
	key, windows := pastKey{"e", "m"}, [][]int{make([]int, 256), make([]int, 256)}
	if s, known := (history{}).scoring(key, windows); known {
		t.Errorf("%g s without an earlier run", s)
	}
	h := history{key: {around: []float64{3}, perToken: []float64{0.1}, shares: []float64{0.5}}}
	if s, known := h.scoring(key, windows); !known || math.Abs(s-(3+256*0.5*0.1+256*0.1)) > 1e-9 {
		t.Errorf("%g s by speed", s)
	}
	window := &record.Scoring{PromptIDs: make([]int, 129), Tokens: 127, Window: &record.Window{Number: 1}}
	for _, seconds := range []int64{40, 10, 10} { // the first one with the load
		a := &record.Attempt{Beginning: record.Beginning{Scoring: window}, EndNS: seconds * 1e9}
		a.Status = record.OK
		h.take(key, a)
	}
	if s, known := h.scoring(key, windows); !known || math.Abs(s-(3+20)) > 1e-9 {
		t.Errorf("%g s by earlier windows", s)
	}
}
