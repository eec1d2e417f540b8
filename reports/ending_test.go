package reports_test

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"llmparity/compare"
	"llmparity/compare/answer"
	"llmparity/compare/comparetest"
	"llmparity/internal/kit/check"
	"llmparity/internal/record"
	"llmparity/reports"
)

// manyEngines are cells of a model and two prompts.
func manyEngines(n int) []comparetest.Engine {
	var out []comparetest.Engine
	for i := range n {
		e := comparetest.Native(6)
		e.Cell.ID, e.Cell.Engine = i+1, fmt.Sprintf("engine-%d", i/2)
		e.Cell.PromptID, e.Cell.Prompt = i%2, []string{"Once upon a time", "There was"}[i%2]
		out = append(out, e)
	}
	return out
}

// The end of a run fits a screen: four lines on where report and record are stand below it.
func TestTableFitsAScreen(t *testing.T) {
	failed, long := comparetest.Browser(2), comparetest.Native(6)
	failed.Failing = map[int]record.Class{1: record.OOM, 2: record.OOM}
	long.Cell.Model.Name = strings.Repeat("a-model-of-a-long-name-", 9)
	noisy, native := comparetest.Browser(6), comparetest.Native(6)
	noisy.Vary, native.Vary = 0.4, 0.4
	for name, c := range map[string]struct {
		engines []comparetest.Engine
		has     []string
	}{
		"two cells": {[]comparetest.Engine{comparetest.Browser(6), comparetest.Native(6)},
			[]string{"decode", "  not comparable\n", "Speed: Not comparable here. WebGPU ran on the CPU", "MiB more",
				"64 of 64 identical", "Quote: Memory and output only. Not speed. Not as browser against native: WebGPU ran on the CPU"}},
		"noisy": {[]comparetest.Engine{noisy, native},
			[]string{"wide-interval", "see the warnings", " to ", "(565 to 841)"}},
		"8 cells":    {manyEngines(8), []string{"engine-3, prompt 1", "engine-0, prompt 0"}},
		"20 cells":   {manyEngines(20), []string{"more cells in the details"}},
		"one cell":   {manyEngines(1), []string{"peak memory"}},
		"three":      {manyEngines(6)[:3], []string{"peak memory"}},
		"failed":     {[]comparetest.Engine{failed, comparetest.Native(6)}, []string{"launch-failed", "(oom)"}},
		"all failed": {[]comparetest.Engine{failed}, []string{"None of the 2 launches succeeded (oom)"}},
		"long":       {[]comparetest.Engine{long, comparetest.Browser(6)}, []string{"decode"}},
	} {
		run := comparetest.Run(t, "default", c.engines...)
		run.Environment.Background = &record.Background{Seconds: 1, Cores: 6}
		res := compare.Runs(run)
		text := fits(t, name, res)
		for _, want := range c.has {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %q in\n%s", name, want, text)
			}
		}
		var b bytes.Buffer
		err := reports.Answer(&b, res)
		a, lines := answer.Of(res), 0
		n := len(a.Warnings) + a.More
		if n > 0 {
			lines = 1
		}
		if err != nil || n > 0 && !strings.Contains(b.String(), fmt.Sprintf("\n%d warning", n)) ||
			strings.Count(b.String(), "may change") != lines {
			t.Errorf("%s: the answer alone: %v\n%s", name, err, b.String())
		}
	}
}

// fits holds the end of a run to 30 lines of 100 columns, four of which are not the table's.
func fits(t *testing.T, name string, res *compare.Result) string {
	t.Helper()
	var b bytes.Buffer
	check.Err(t, reports.Table(&b, res))
	lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	if len(lines) > 30-4 {
		t.Errorf("%s: %d lines\n%s", name, len(lines), b.String())
	}
	for _, l := range lines {
		if utf8.RuneCountInString(l) > 100 {
			t.Errorf("%s: over 100 columns: %s", name, l)
		}
	}
	return b.String()
}

// A cell whose launches were interrupted has not failed, nor has one that was not reached.
func TestInterruptedCellsHaveNotFailed(t *testing.T) {
	engines := manyEngines(6)
	for i := range engines {
		engines[i].Cell.Repetitions = 1
	}
	engines[1].Failing = map[int]record.Class{1: record.OOM}
	engines[2].Cut = 1
	run := comparetest.Run(t, "cut", engines...)
	run.Status = record.Interrupted
	run.Attempts = slices.DeleteFunc(run.Attempts, func(a *record.Attempt) bool { return a.Cell > 4 })
	text := fits(t, "cut", compare.Runs(run))
	for cell, want := range map[string]string{"engine-0, prompt 1": "failed", "engine-1, prompt 0": "interrupted",
		"engine-2, prompt 0": "not launched"} {
		_, row, _ := strings.Cut(text, "\n"+cell)
		if row, _, _ = strings.Cut(row, "\n"); !strings.HasPrefix(strings.TrimLeft(row, " "), want) {
			t.Errorf("%s: %q, want %q in\n%s", cell, row, want, text)
		}
	}
	run.Attempts = slices.DeleteFunc(run.Attempts, func(a *record.Attempt) bool { return a.Cell == 2 })
	var b bytes.Buffer
	check.Err(t, reports.Answer(&b, compare.Runs(run)))
	if text := words(b.String()); !strings.Contains(text, "1 of 3 launches was interrupted") ||
		strings.Contains(text, "failed or") {
		t.Errorf("no launch has failed:\n%s", b.String())
	}
}

// A cell that was repeated until its interval was narrow enough has more launches than were planned at least.
func TestLaunchesAreNotMoreThanTheirWhole(t *testing.T) {
	e := comparetest.Native(10)
	run := comparetest.Run(t, "until", e)
	run.Cells[0].Repetitions = 6
	res := compare.Runs(run)
	for name, text := range map[string]string{
		"page":     pageOf(t, res, run),
		"Markdown": rendered(t, func(w io.Writer) error { return reports.Markdown(w, res) }),
		"details":  rendered(t, func(w io.Writer) error { return reports.Details(w, res) }),
		"JUnit":    rendered(t, func(w io.Writer) error { return reports.JUnit(w, res) }),
	} {
		if strings.Contains(text, "10/6") || strings.Contains(text, "10 of 6") {
			t.Errorf("%s has 10 of 6 launches", name)
		}
	}
}
