//go:build linux

package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"llmparity/compare/comparetest"
)

// BenchmarkReport measures time and memory of `llmparity report` for runs of 10^4 to 10^6 samples with a tenth as many
// tokens. Exponents of 1 mean linear growth; the start of the program dominates below 10^5 samples.
func BenchmarkReport(b *testing.B) {
	program := filepath.Join(b.TempDir(), "llmparity")
	if text, err := exec.CommandContext(b.Context(), "go", "build", "-trimpath", "-o", program,
		".").CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, text)
	}
	var costs []reportCost
	for _, samples := range []int{10_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprintf("samples=%d", samples), func(b *testing.B) {
			dir := comparetest.Long(b, b.TempDir(), samples, samples/10)
			page := filepath.Join(b.TempDir(), "report.html")
			c := reportCost{samples: float64(samples)}
			for b.Loop() {
				c.measure(b, exec.CommandContext(b.Context(), program, "report", dir, "-o", page))
			}
			info, err := os.Stat(page)
			check(b, err)
			slices.Sort(c.wall)
			slices.Sort(c.cpu)
			b.ReportMetric(c.seconds(), "s")
			b.ReportMetric(c.cpu[len(c.cpu)/2], "CPU-s")
			b.ReportMetric(c.rss, "peak-MiB")
			b.ReportMetric(float64(info.Size())/1e6, "HTML-MB")
			b.ReportMetric(0, "ns/op") // it is the same as s
			if len(costs) == 0 || costs[len(costs)-1].samples != c.samples {
				costs = append(costs, reportCost{})
			}
			costs[len(costs)-1] = c
			if n := len(costs); n > 1 {
				b.ReportMetric(exponent(costs, reportCost.work), "exponent")
				b.ReportMetric(exponent(costs[n-2:], reportCost.work), "last-exponent")
			}
		})
	}
}

// reportCost is the cost of reports of one size.
type reportCost struct {
	samples   float64
	wall, cpu []float64 // seconds
	rss       float64   // MiB, the most of any
}

func (c reportCost) seconds() float64 { return c.wall[len(c.wall)/2] }

// work is CPU time, which depends least on other processes.
func (c reportCost) work() float64 { return c.cpu[len(c.cpu)/2] }

func (c *reportCost) measure(b *testing.B, cmd *exec.Cmd) {
	b.Helper()
	cmd.Stdout = io.Discard
	began := time.Now()
	check(b, cmd.Run())
	c.wall = append(c.wall, time.Since(began).Seconds())
	c.cpu = append(c.cpu, (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds())
	usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		b.Fatal("the system does not tell what a process used")
	}
	// The kernel counts what the process was before it became the program: us, in our memory.
	var own syscall.Rusage
	check(b, syscall.Getrusage(syscall.RUSAGE_SELF, &own))
	if own.Maxrss >= usage.Maxrss && c.samples > 100_000 {
		b.Fatalf("the benchmark itself took %d MiB: what the program took, at most as much, can't be told",
			own.Maxrss>>10)
	}
	c.rss = max(c.rss, float64(usage.Maxrss)/1024)
}

// exponent is the slope of log cost over log samples, by least squares.
func exponent(costs []reportCost, of func(reportCost) float64) float64 {
	var n, x, y, xx, xy float64
	for _, c := range costs {
		lx, ly := math.Log(c.samples), math.Log(of(c))
		n, x, y, xx, xy = n+1, x+lx, y+ly, xx+lx*lx, xy+lx*ly
	}
	return (n*xy - x*y) / (n*xx - x*x)
}
