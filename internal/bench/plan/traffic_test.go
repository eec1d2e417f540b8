package plan_test

import (
	"reflect"
	"strings"
	"testing"

	"llmparity/internal/bench/plan"
	"llmparity/internal/kinds"
	"llmparity/internal/record"
)

func TestTraffic(t *testing.T) {
	const one = "prompts: [a]\nmax_tokens: 4\n"
	for _, c := range []struct {
		text  string
		want  []*record.Traffic // a setup each
		slots []int
	}{
		{one, []*record.Traffic{nil}, []int{0}},
		{one + "concurrency: 1\nbatch_size: 1\n", []*record.Traffic{nil}, []int{0}},
		{one + "concurrency: [1, 3]\nbatch_sizes: [1]\nseed: 7\n",
			[]*record.Traffic{{Loop: "closed", Concurrency: 1, Requests: 4, Seed: 7},
				{Loop: "closed", Concurrency: 3, Requests: 12, Seed: 7}}, []int{1, 3}},
		{one + "batch_sizes: [1, 8]\nconcurrency: 1\n", []*record.Traffic{{Loop: "batch", Concurrency: 1, Requests: 1},
			{Loop: "batch", Concurrency: 8, Requests: 8}}, []int{1, 8}},
		{one + "traffic: {requests: 6}\n", []*record.Traffic{{Loop: "closed", Concurrency: 1, Requests: 6}}, []int{1}},
		{one + "traffic: {loop: batch, concurrency: 4, requests: 8}\n",
			[]*record.Traffic{{Loop: "batch", Concurrency: 4, Requests: 8}}, []int{4}},
		{one + "traffic: {rate: 2.5, ramp: 10s, seed: 3}\nseed: 2\n",
			[]*record.Traffic{{Loop: "open", Requests: 20, Arrivals: "poisson", Rate: 2.5, Ramp: 10, Seed: 3}},
			[]int{4}},
		{one + "concurrency: [2, 6]\ntraffic: {loop: open, rate: 1, arrivals: constant}\n",
			[]*record.Traffic{{Loop: "open", Concurrency: 2, Requests: 20, Arrivals: "constant", Rate: 1},
				{Loop: "open", Concurrency: 6, Requests: 20, Arrivals: "constant", Rate: 1}}, []int{2, 6}},
		{one + "traffic: {concurrency: 2, turns: 3, start_delay: 500ms, goal: {ttft_ms: 200, e2e_ms: 1e3}}\n",
			[]*record.Traffic{{Loop: "closed", Concurrency: 2, Requests: 6, Turns: 3, StartDelay: 0.5,
				Goal: &record.Goal{TTFTms: 200, E2Ems: 1000}}}, []int{2}},
		{"max_tokens: 4\nprompts: {conversation: [hello, and then?]}\n",
			[]*record.Traffic{{Loop: "closed", Concurrency: 1, Requests: 2, Turns: 2}}, []int{1}},
		{"max_tokens: 4\nprompts: [{dataset: q.jsonl, limit: 9}]\nconcurrency: 2\n",
			[]*record.Traffic{{Loop: "closed", Concurrency: 2, Requests: 9}}, []int{2}},
		{"max_tokens: 4\nprompts: [{trace: t.csv, limit: 9}]\n",
			[]*record.Traffic{{Loop: "open", Requests: 9, Arrivals: record.TraceArrivals}}, []int{4}},
		{"prompts: [{trace: t.csv}]\nconcurrency: 3\ntraffic: {goal: {ttft_ms: 1}}\n",
			[]*record.Traffic{{Loop: "open", Concurrency: 3, Arrivals: "trace", Goal: &record.Goal{TTFTms: 1}}},
			[]int{3}},
		{"max_tokens: 4\nprompts: [{file: t.txt}]\n", []*record.Traffic{nil}, []int{0}},
		{"traffic: {mix: [{name: short, input_length: 8, output_length: 2}, {name: long, input_length: 64, output_length: 9}]}\n",
			[]*record.Traffic{{Loop: "closed", Concurrency: 1, Requests: 4,
				Mix: []record.Kind{{Name: "short", Share: 0.5, InputTokens: 8, MaxTokens: 2},
					{Name: "long", Share: 0.5, InputTokens: 64, MaxTokens: 9}}}}, []int{1}},
		{one + "traffic: {mix: [{name: own, share: 3}, {name: other, share: 1, prompt: b}]}\n",
			[]*record.Traffic{{Loop: "closed", Concurrency: 1, Requests: 4,
				Mix: []record.Kind{{Name: "own", Share: 3, Prompt: "a", MaxTokens: 4},
					{Name: "other", Share: 1, Prompt: "b", MaxTokens: 4}}}}, []int{1}},
	} {
		var got []*record.Traffic
		var slots []int
		for _, s := range expand(t, parse(t, head+c.text)).Setups {
			if len(s.Cells) != 2 {
				t.Errorf("%s: %d cells", c.text, len(s.Cells))
			}
			got, slots = append(got, s.Cells[0].Traffic), append(slots, s.Plan.Slots)
		}
		if !reflect.DeepEqual(got, c.want) || !reflect.DeepEqual(slots, c.slots) {
			t.Errorf("%s:", c.text)
			for i, g := range got {
				t.Errorf("  %+v, slots %d", g, slots[i])
			}
		}
	}
}

func TestContradictingLoadsAreRefused(t *testing.T) {
	const one = "prompts: [a]\nmax_tokens: 4\n"
	for text, want := range map[string]string{
		"batch_sizes: [1, 2]\nconcurrency: [1, 4]\n":                   "p:6: batch_sizes: cannot be combined with concurrency; remove one, or set it to 1",
		"batch_sizes: [2]\ntraffic: {loop: closed}\n":                  "p:6: batch_sizes: cannot be combined with traffic.loop: closed; remove one",
		"batch_sizes: [2]\ntraffic:\n  rate: 2\n":                      "p:6: batch_sizes: cannot be combined with traffic.rate; remove one",
		"concurrency: [2]\ntraffic:\n  concurrency: 2\n":               "p:8: traffic.concurrency: cannot be combined with concurrency; remove one",
		"traffic:\n  loop: open\n":                                     "p:7: traffic.loop: an open loop needs a rate",
		"traffic:\n  loop: closed\n  rate: 2\n":                        "p:8: traffic.rate: requires loop: open, not closed; remove rate or loop",
		"traffic:\n  arrivals: poisson\n":                              "p:7: traffic.arrivals: requires loop: open and a rate",
		"traffic:\n  loop: round\n":                                    `p:7: traffic.loop: unknown value "round"; use closed, open or batch`,
		"traffic:\n  rate: -1\n":                                       "p:7: traffic.rate: -1",
		"traffic:\n  requests: 3\n  concurrency: 4\n":                  "p:7: traffic.requests: 3 is less than the 4 clients or requests at once",
		"traffic:\n  requests: 5\n  turns: 2\n":                        "p:7: traffic.requests: 5 is not a multiple of the 2 turns of a conversation",
		"traffic:\n  requests: 3\nprompts: [{conversation: [a, b]}]\n": "p:6: traffic.requests: 3 is not a multiple of the 2 turns of a conversation",
		"batch_sizes: 2\nprompts: [{trace: x}]\n":                      "p:5: batch_sizes: cannot be combined with a trace; remove one",
		"traffic:\n  goal: {}\n":                                       "p:7: traffic.goal: empty; set ttft_ms, tpot_ms or e2e_ms",
		"traffic:\n  goal: {ttft_ms: -2}\n":                            "p:7: traffic.goal.ttft_ms: -2",
		"traffic:\n  mix:\n  - {share: 1}\n":                           "p:8: traffic.mix[0].name: missing; use names such as short and long",
		"traffic:\n  mix:\n  - {name: a}\n  - {name: a}\n":             "p:9: traffic.mix[1].name: duplicate name a",
		"traffic:\n  mix:\n  - {name: a, share: 1}\n  - {name: b}\n":   "p:9: traffic.mix[1].share: missing; set it for all kinds or for none",
		"traffic:\n  mix: [{name: a, input_length: 1, prompt: x}]\n":   "p:7: traffic.mix[0].input_length: cannot be combined with prompt; remove one",
		"traffic:\n  mixture: []\n":                                    `p:7: unknown field "traffic.mixture"; did you mean "mix"?`,
		"traffic:\n  start_delay: soon\n":                              `p:7: traffic.start_delay: "soon" is not a duration`,
		"models:\n- {model: x, batch_sizes: [2]}\nconcurrency: [2]\n":  "models[0].batch_sizes: cannot be combined with concurrency; remove one, or set it to 1",
	} {
		whole := head + one + text
		if strings.Contains(text, "prompts") {
			whole = head + "max_tokens: 4\n" + text
		}
		if strings.HasPrefix(text, "models") {
			whole = strings.Replace(whole, "model: tiny\n", "", 1)
		}
		_, err := plan.Parse([]byte(whole), "p", kinds.All...)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// A mix whose kinds have prompts is a prompt; other prompts are measured alone, with the same clients and setup.
func TestPromptsBesideMixAreMeasuredAlone(t *testing.T) {
	const mix = "traffic: {concurrency: 4, requests: 20, mix: [{name: short, input_length: 8}, {name: long, input_length: 64}]}\n"
	for text, want := range map[string][]record.Cell{
		"max_tokens: 4\n":                                           {{}},
		"max_tokens: 4\ninput_lengths: [8, 9]\n":                    {{}, {InputTokens: 8}, {InputTokens: 9}},
		"max_tokens: 4\nprompts: [a]\n":                             {{Prompt: "a"}, {}},
		"models: [{model: x, input_lengths: [8]}]\nmax_tokens: 4\n": {{}, {InputTokens: 8}},
	} {
		whole := head + text + mix
		if strings.HasPrefix(text, "models") {
			whole = strings.Replace(whole, "model: tiny\n", "", 1)
		}
		p := parse(t, whole)
		m := expand(t, p)
		var got []record.Cell
		for _, c := range m.Cells {
			alone := c.Prompt != "" || c.InputTokens > 0
			if tr := c.Traffic; tr.Concurrency != 4 || tr.Requests != 20 || alone != (len(tr.Mix) == 0) ||
				m.Setups[0].Plan.Slots != 4 {
				t.Errorf("%s: %+v", text, tr)
			}
			if c.Engine == p.Engines[0] {
				got = append(got, record.Cell{Prompt: c.Prompt, InputTokens: c.InputTokens})
			}
		}
		if !reflect.DeepEqual(got, want) || len(m.Setups) != 1 || len(m.Cells) != len(want)*len(p.Engines) {
			t.Errorf("%s: %d setups, %d cells: %+v", text, len(m.Setups), len(m.Cells), got)
		}
	}
}

// Prompts and numbers of requests are filled in cell by cell.
func TestCellsHaveTrafficOfTheirOwn(t *testing.T) {
	p := parse(t, head+"prompts: [a, b]\nmax_tokens: 4\ntraffic: {mix: [{name: one}, {name: other, prompt: c}]}\n")
	for _, c := range expand(t, p).Cells {
		if k := c.Traffic.Mix[1]; k.Prompt != "c" {
			t.Errorf("cell %d has another's prompt %q", c.ID, k.Prompt)
		}
		c.Traffic.Mix[1].Prompt = "changed"
	}
}
