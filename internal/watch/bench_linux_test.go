package watch_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"llmparity/internal/check"
	"llmparity/internal/sample/proc/proctest"
)

// Limits for watching fifty processes at ten samples per second: share of a core, and of psrecord's CPU time per
// sample.
const (
	fifty       = 50
	ofACore     = 0.01
	ofPsrecord  = 0.1
	benchLength = 5 * time.Second
)

// BenchmarkFiftyProcesses watches one tree with psrecord and with llmparity in turn, ten samples per second, without
// the CPU time of starting. Both read RSS and VMS; llmparity also runs with PSS.
func BenchmarkFiftyProcesses(b *testing.B) {
	psrecord := proctest.Find(b, "../../scripts")
	pid := proctest.Family(b, fifty)[0]
	var ratios, cores, samples, theirs, expensive []float64
	for range 5 {
		start, _ := psrecord.Watch(b, pid, time.Millisecond, "--include-children", "--interval", "1")
		cpu, n := psrecord.Watch(b, pid, benchLength, "--include-children", "--interval", "0.1")
		their := float64(cpu-start) / float64(n)
		ours, core := withUs(b, pid, 0)
		_, withPSS := withUs(b, pid, 2*time.Second)
		b.Logf("ours %.0f µs a sample, %.2f%% of a core (with PSS %.2f%%); psrecord %.0f µs a sample", ours/1e3,
			100*core, 100*withPSS, their/1e3)
		ratios, cores, samples = append(ratios, ours/their), append(cores, core), append(samples, ours/1e3)
		theirs, expensive = append(theirs, their/1e3), append(expensive, withPSS)
	}
	b.ReportMetric(proctest.Median(ratios), "of-psrecord")
	b.ReportMetric(100*proctest.Median(cores), "%-of-a-core")
	b.ReportMetric(100*proctest.Median(expensive), "%-of-a-core-with-PSS")
	b.ReportMetric(proctest.Median(samples), "our-µs/sample")
	b.ReportMetric(proctest.Median(theirs), "psrecord-µs/sample")
	b.ReportMetric(0, "ns/op") // meaningless here
	if proctest.Median(cores) > ofACore || proctest.Median(ratios) > ofPsrecord {
		b.Errorf("%.4f of a core, %.3f of psrecord's CPU time per sample; limits %.2f and %.2f",
			proctest.Median(cores), proctest.Median(ratios), ofACore, ofPsrecord)
	}
}

// withUs returns the CPU time for a sample, in nanoseconds, and the share of a core.
func withUs(b *testing.B, pid int, pss time.Duration) (sample, core float64) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), asWatcher+"="+strconv.Itoa(pid), pssOf+"="+pss.String())
	file, err := os.Create(filepath.Join(b.TempDir(), "rows"))
	check.Err(b, err)
	defer func() { _ = file.Close() }() // already counted
	var errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = file, &errs
	in, err := cmd.StdinPipe()
	check.Err(b, err)
	check.Err(b, cmd.Start())
	time.Sleep(benchLength)
	_ = in.Close()
	if err := cmd.Wait(); err != nil {
		b.Fatalf("%v\n%s", err, &errs)
	}
	var cpu, samples, length int64
	_, line, _ := strings.Cut(errs.String(), costs)
	if _, err := fmt.Sscan(line, &cpu, &samples, &length); err != nil {
		b.Fatalf("%v\n%s", err, &errs)
	}
	text, err := os.ReadFile(file.Name())
	check.Err(b, err)
	if n := bytes.Count(text, []byte("\n")) - 1; n != int(samples)*fifty {
		b.Fatalf("%d rows of %d samples", n, samples)
	}
	return float64(cpu) / float64(samples), float64(cpu) / float64(length)
}
