package compare_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/compare/parity"
	"llmparity/internal/figure"
	"llmparity/internal/record"
)

// steady is an engine whose every request takes the same: 9 ms to its first token, 1.1 ms for each of 63 more, 2 ms to
// return.
func steady(launches int) comparetest.Engine {
	e := comparetest.Native(launches)
	e.Vary = 0
	return e
}

// Clients who begin so late that the one before is gone say nothing of how many requests an engine takes.
func TestNoQueueWithoutOtherRequests(t *testing.T) {
	apart, close := comparetest.Loaded(steady(6), 1, 3, 3), comparetest.Loaded(steady(6), 2, 3, 3)
	apart.Cell.Traffic.StartDelay, close.Slots = 0.2, 1
	res := compare.Runs(comparetest.Run(t, "load", apart, close))
	if a, b := res.Cells[0].Load, res.Cells[1].Load; len(a.Caveats) != 0 || len(b.Caveats) != 1 {
		t.Errorf("%q, %q", a.Caveats, b.Caveats)
	}
}

// A request that is refused at once must make no launch look quick.
func TestFailedRequestsDoNotCount(t *testing.T) {
	e := comparetest.Loaded(steady(6), 1, 4, 40)
	e.Cell.Traffic.Goal = &record.Goal{E2Ems: 1000}
	run := comparetest.Run(t, "load", e)
	for _, a := range run.Attempts {
		failed := 0
		for _, q := range a.Requests {
			if q.Phase == record.Measure && failed < 30 {
				failed++
				q.Finish, q.SentNS, q.ReturnedNS, q.Tokens, q.Text = record.FailedRequest, q.Due, q.Due, nil, ""
			}
		}
	}
	c := compare.Runs(run).Cells[0]
	if got := c.Figure(figure.Percentile(figure.E2E, 0.5)).Center(); !(math.Abs(got-80) <= 5) {
		t.Errorf("end to end %g ms, want those that were answered, 80", got)
	}
	if got := c.Figure(figure.GoodShare).Center(); got != 25 {
		t.Errorf("%g %% kept the goal, and 10 of 40 were answered", got)
	}
	if got := c.Figure(figure.RequestRate).Center(); !(got <= 4/0.080) {
		t.Errorf("%g requests/s: as if what failed had been answered", got)
	}
	if !c.Self.Identical {
		t.Errorf("what failed said something else: %+v", c.Self)
	}
}

func TestOtherTrafficIsAnotherTask(t *testing.T) {
	var all []comparetest.Engine
	for n, change := range []func(*record.Cell){
		func(*record.Cell) {},
		func(c *record.Cell) { c.InputTokens = 128 },
		func(c *record.Cell) { c.KVDType = "f16" },
		func(c *record.Cell) { c.Start = record.ColdStart },
		func(c *record.Cell) { c.MaxTokens = 16 },
		func(c *record.Cell) { c.DType = "f16" },
		func(c *record.Cell) { c.Threads = 2 },
		func(c *record.Cell) { c.Model.Context = 512 },
		func(c *record.Cell) {
			c.Traffic = &record.Traffic{Loop: record.ClosedLoop, Concurrency: 2, Requests: 8}
		},
		func(c *record.Cell) { c.Traffic = &record.Traffic{Loop: record.Batch, Concurrency: 2, Requests: 2} },
	} {
		for k, e := range []comparetest.Engine{comparetest.Native(2), comparetest.Native(2)} {
			e.Cell.ID, e.Cell.Setup = 2*n+k+1, 1
			e.Cell.Engine = []string{"a", "b"}[k]
			change(&e.Cell)
			all = append(all, e)
		}
	}
	res := compare.Runs(comparetest.Run(t, "axes", all...))
	res.Comparisons = slices.DeleteFunc(res.Comparisons, func(c compare.Comparison) bool { return c.Axes != nil })
	if len(res.Comparisons) != len(all)/2 {
		t.Errorf("%d comparisons of %d cells", len(res.Comparisons), len(all))
	}
	labels := map[string]bool{}
	for i, c := range res.Comparisons {
		if c.A != 2*i || c.B != 2*i+1 || c.Refused != "" {
			t.Errorf("%q against %q: %s", res.Cells[c.A].Label, res.Cells[c.B].Label, c.Refused)
		}
	}
	for _, c := range res.Cells {
		labels[c.Label] = true
	}
	if len(labels) != len(all) {
		t.Errorf("labels %v", labels)
	}
	for _, words := range []string{"input of 128", "KV cache f16", "cold start", "16 tokens", "concurrency 2",
		"batch 2"} {
		if !slices.ContainsFunc(res.Cells, func(c *compare.Cell) bool { return strings.Contains(c.Label, words) }) {
			t.Errorf("no label says %q", words)
		}
	}
}

// Requests with other prompts may have other answers, also where the engine reports no ids of prompts.
func TestOnlyRequestsOfOnePromptMustAgree(t *testing.T) {
	launch := func(prompts ...string) *record.Attempt {
		a := &record.Attempt{}
		for i, p := range prompts {
			finish := "length"
			if prompt, failed := strings.CutPrefix(p, "failed "); failed {
				p, finish = prompt, record.FailedRequest
			}
			a.Requests = append(a.Requests, &record.Request{ID: i + 1, Phase: record.Measure, SentNS: int64(i),
				Finish: finish, Text: "answer to " + p, Tokens: []record.TokenRow{{ID: record.NoID}},
				Slot: record.Slot{PromptHash: record.HashOf(p)}})
		}
		return a
	}
	other := launch("a", "a")
	other.Requests[1].Text = "other"
	for _, c := range []struct {
		name     string
		launches []*record.Attempt
		says     string
	}{
		{"other prompts", []*record.Attempt{launch("a", "b", "c")}, "not known: needs two counted launches"},
		{"two launches", []*record.Attempt{launch("a", "b"), launch("a", "b")}, "all 2 requests gave the same text"},
		{"the same prompt", []*record.Attempt{launch("a", "b", "a")}, "all 2 requests gave the same text"},
		{"really not repeatable", []*record.Attempt{other}, "requests of the cell differ"},
		{"a failed request", []*record.Attempt{launch("a", "b"), launch("failed a", "b"), launch("a")},
			"all 2 requests gave the same text"},
	} {
		if got := parity.WithItself(c.launches, 0); !strings.Contains(got.Verdict, c.says) {
			t.Errorf("%s: %s, want %s", c.name, got.Verdict, c.says)
		}
	}
}
