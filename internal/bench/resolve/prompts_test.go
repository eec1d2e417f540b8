package resolve

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"llmparity/internal/bench/plan"
	"llmparity/internal/bench/traffic"
	"llmparity/internal/engine/enginetest"
	"llmparity/internal/kit/check"
	"llmparity/internal/models"
	"llmparity/internal/record"
)

func TestSourcesCompleteCells(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		check.Err(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	data := write("d.jsonl", "{\"prompt\":\"a question\"}\n{\"prompt\":\"another\",\"max_tokens\":40}\n")
	trace := write("t.csv", "time,input_tokens,output_tokens\n3,20,5\n4,30,9\n")
	shared := &record.Traffic{Loop: record.ClosedLoop, Concurrency: 1, Requests: 2}
	open := &record.Traffic{Loop: record.OpenLoop, Arrivals: record.TraceArrivals}
	p := plan.Plan{Prompts: []plan.Prompt{{Source: plan.Source{Dataset: data}}, {Source: plan.Source{Trace: trace}},
		{Source: plan.Source{Conversation: []string{"hello", "and then"}}}}}
	cells := []record.Cell{
		{PromptID: 1, MaxTokens: 8, Traffic: shared},
		{PromptID: 2, MaxTokens: 8, Traffic: open},
		{PromptID: 3, MaxTokens: 8, Traffic: &record.Traffic{Turns: 2}},
		{PromptID: 4, InputTokens: 12, MaxTokens: 8, Traffic: shared},
		{PromptID: 5, Prompt: "a text", MaxTokens: 8, Traffic: shared},
		{PromptID: 6, Prompt: "a text", MaxTokens: 8},
	}
	m := enginetest.TinyModel(t)
	r := &Resolver{cache: cache{}}
	for i := range cells {
		check.Err(t, r.source(&p, &cells[i]))
	}
	if s := cells[0]; s.Prompt != "a question" || s.MaxTokens != 40 {
		t.Errorf("a data set's cell is %+v", s)
	}
	if s := cells[1]; s.InputTokens != 30 || s.MaxTokens != 9 || s.Traffic.Requests != 2 ||
		s.Traffic.Trace[1].At != 1 {
		t.Errorf("a trace's cell is %+v of %+v", s, s.Traffic)
	}

	ask := r.ask(t.Context(), &Chosen{Setup: &plan.Setup{Plan: p, Cells: cells}, Model: m})
	tokens, err := r.tokenizer(m)
	check.Err(t, err)
	length := func(text string) int { return len(tokens.Prompt(text)) }
	if q := ask(cells[0], traffic.Request{Conversation: 1}); q.Prompt != "another" || q.MaxTokens != 40 {
		t.Errorf("of a data set: %+v", q)
	}
	if q := ask(cells[1], traffic.Request{Index: 1, Conversation: 1}); length(q.Prompt) != 30 || q.MaxTokens != 9 {
		t.Errorf("of a trace: %d tokens, %+v", length(q.Prompt), q)
	}
	if q := ask(cells[2], traffic.Request{Turn: 2, Before: "hello yourself"}); q.Prompt != "hello yourself\nand then" {
		t.Errorf("of a conversation: %+v", q)
	}
	first, second := ask(cells[3], traffic.Request{}), ask(cells[3], traffic.Request{Index: 1})
	if length(first.Prompt) != 12 || length(second.Prompt) != 12 || first.Prompt == second.Prompt {
		t.Errorf("of a number of tokens: %+v, %+v", first, second)
	}
	if q := ask(cells[4], traffic.Request{Index: 3}); q.Prompt != "a text" || q.MaxTokens != 8 {
		t.Errorf("of a text: %+v", q)
	}

	served := &Chosen{Setup: &plan.Setup{},
		Model:  models.Model{Model: record.Model{Name: "theirs", Format: record.Served}},
		launch: &launch{set: &set{}}}
	if err := r.write(t.Context(), served, &cells[3]); err == nil {
		t.Error("generated prompts for an unknown vocabulary")
	}
	for _, n := range []int{0, 1 << 22} {
		long := record.Cell{Traffic: &record.Traffic{Trace: []record.Arrival{{InputTokens: 8}, {InputTokens: n}}}}
		if err := r.write(t.Context(), &Chosen{Setup: &plan.Setup{}, Model: m}, &long); (err == nil) != (n == 0) {
			t.Errorf("a prompt of %d tokens: %v", n, err)
		}
	}
}

func TestUnreadableSources(t *testing.T) {
	wrong := filepath.Join(t.TempDir(), "wrong")
	check.Err(t, os.WriteFile(wrong, []byte("{\"prompt\":\"a\"}\n{\"prompt\":7}\n"), 0o600))
	for want, s := range map[string]*plan.Source{
		wrong + ":2: prompt is not a text": {Dataset: wrong},
		wrong + ":1: no field time":        {Trace: wrong},
		"can't read the data set none":     {Dataset: "none"},
		"can't read the trace none":        {Trace: "none"},
	} {
		p := plan.Plan{Prompts: []plan.Prompt{{Source: *s}}}
		c := cache{}
		if err := c.source(&p, &record.Cell{PromptID: 1, Traffic: &record.Traffic{}}); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
