//go:build unix

package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"llmparity/internal/history"
	"llmparity/internal/kit/workers"
)

// BenchmarkHistory checks a history of a million launches and writes its pages: 10,417 runs of 16 cells, six launches
// each, with ten figures.
func BenchmarkHistory(b *testing.B) {
	store := filepath.Join(b.TempDir(), "store")
	check(b, os.MkdirAll(filepath.Join(store, "runs"), 0o755))
	const runs, cells, figures = 10_417, 16, 10
	check(b, workers.Each(b.Context(), 2, runs, func(_ context.Context, i int) error {
		name, text, err := manyLaunches(i, cells, figures).Encode()
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(store, "runs", name), text, 0o600)
	}))
	site := filepath.Join(b.TempDir(), "site")
	for b.Loop() {
		for _, args := range [][]string{{"check"}, {"site", "-o", site}} {
			c := exec.Command(os.Args[0], append(append([]string{"history"}, args...), "--store", store)...)
			c.Env = append(os.Environ(), asProgram+"=1")
			begin := time.Now()
			if out, err := c.CombinedOutput(); err != nil {
				b.Logf("%v: %.300s", err, out)
			}
			b.ReportMetric(time.Since(begin).Seconds(), args[0]+"-sec")
			b.ReportMetric((c.ProcessState.UserTime() + c.ProcessState.SystemTime()).Seconds(), args[0]+"-CPU-sec")
			b.ReportMetric(float64(c.ProcessState.SysUsage().(*syscall.Rusage).Maxrss)/1024, args[0]+"-MiB")
		}
	}
	first, err := os.Stat(filepath.Join(site, "index.html"))
	check(b, err)
	b.ReportMetric(float64(first.Size())/1000, "first-page-kB")
}

func manyLaunches(i, cells, figures int) *history.Run {
	r := rand.New(rand.NewPCG(uint64(i), 1))
	at := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(i) * 2 * time.Hour)
	run := &history.Run{Head: history.Head{Name: "nightly", Started: at, Machine: "mouse, 2 cores",
		Commit: history.Commit{SHA: fmt.Sprintf("%040x", i+1<<40), Time: at, Author: "Jane Mouse",
			Subject: "Make it quicker"},
		Environment: map[string]string{"kernel": "6.1", "llmparity": fmt.Sprint("build ", i)}}}
	for f := range figures {
		run.Figures = append(run.Figures, history.Figure{Name: fmt.Sprint("figure", f), Title: fmt.Sprint("figure ", f),
			Unit: "ms", Better: "lower", Tested: true, Ratio: true})
	}
	for c := range cells {
		cell := history.Cell{Key: fmt.Sprint("cell", c), Label: fmt.Sprint("WebLLM, tiny, input of ", c),
			Engine: "WebLLM",
			Environment: map[string]string{"browser": fmt.Sprint("Chromium ", 100+i/500),
				"engine": "WebLLM 0.2.86"}, Fixed: c == 0}
		if c > 0 {
			cell.Control = new(0)
		}
		run.Cells = append(run.Cells, cell)
		level := math.Exp(0.02 * r.NormFloat64())
		for n := 1; n <= 6; n++ {
			l := history.Launch{Cell: c, Number: n}
			for f := range figures {
				l.Values = append(l.Values, math.Round(1e4*float64(f+1)*level*math.Exp(0.05*r.NormFloat64()))/1e3)
			}
			run.Launches = append(run.Launches, l)
		}
	}
	return run
}
