package browser

import (
	"io/fs"
	"os"
	"slices"
	"testing"
	"testing/fstest"
	"time"

	"github.com/prometheus/procfs"

	"llmparity/assets/page"
	"llmparity/internal/engine"
	"llmparity/internal/engine/enginetest"
	"llmparity/internal/record"
	"llmparity/internal/sample"
)

// atLeast is the share of its speed that an engine must keep while it is measured.
const atLeast = 0.95

// pairs of generations, with and without measuring: enough for the 7th and the 18th ratio to bound the median with 95 %.
const pairs = 24

// long is a generation's length: the dear source is read every 2 s.
const long = 400

// noLedger stands in for ledger.js where nothing shall be patched.
const noLedger = `export const ledger = { brief: () => [], mark() {}, enter() {} };`

// BenchmarkPerturbation generates with the ledger and all samplers, and without any of them, in turn, in two browsers that are both
// open all the time. On a software adapter, which computes on the cores that samplers run on, this is the hard case. The CPU time of
// browser and sampler is compared beside the rate: it tells the same on a machine that is busy with other things.
func BenchmarkPerturbation(b *testing.B) {
	b.Run("everything", func(b *testing.B) { perturbation(b, true) })
	b.Run("ledger", func(b *testing.B) { perturbation(b, false) })
}

// perturbation compares a page with the ledger, and with samplers where it is told so, with one without either.
func perturbation(b *testing.B, samplers bool) {
	c, m := tinyModel(b)
	on, off := opened(b, c, page.Files()), opened(b, c, without(b, "ledger.js", noLedger))
	w, err := record.Create(b.TempDir(), record.Meta{Name: "perturbation", Started: time.Now()}, record.Environment{}, nil)
	if err != nil {
		b.Fatal(err)
	}
	for _, s := range []*open{on, off} {
		if err := s.session.Load(b.Context(), m); err != nil {
			b.Fatal(err)
		}
		s.decode(b) // warm
	}
	var ratios, rates, cpu []float64
	var cost record.Cost
	measured := func() (rate float64, cpu time.Duration) {
		rec := w.Begin(record.Cell{ID: 1}, 1, false, 0)
		sampler := sample.New(b.Context(), rec)
		for _, s := range on.probe.Attached() {
			if samplers {
				sampler.Attach(kept(s))
			}
		}
		rate, cpu = on.decode(b)
		one := sampler.Stop()
		cost.Reads, cost.ReadNS = cost.Reads+one.Reads, cost.ReadNS+one.ReadNS
		cost.Waits, cost.WaitNS = cost.Waits+one.Waits, cost.WaitNS+one.WaitNS
		rec.End(record.OK, "", nil, one)
		return rate, cpu
	}
	for i := range pairs {
		var with, without float64
		var cpuWith, cpuWithout time.Duration
		if i%2 == 0 {
			with, cpuWith = measured()
			without, cpuWithout = off.decode(b)
		} else {
			without, cpuWithout = off.decode(b)
			with, cpuWith = measured()
		}
		cpu = append(cpu, float64(cpuWith)/float64(cpuWithout))
		ratios, rates = append(ratios, with/without), append(rates, without)
	}
	if err := w.Close(record.OK); err != nil {
		b.Fatal(err)
	}
	slices.Sort(ratios)
	slices.Sort(rates)
	slices.Sort(cpu)
	b.ReportMetric(ratios[pairs/2], "ratio")
	b.ReportMetric(ratios[6], "ratio-low")
	b.ReportMetric(ratios[17], "ratio-high")
	b.ReportMetric(cpu[pairs/2], "cpu-ratio")
	b.ReportMetric(cpu[17], "cpu-ratio-high")
	b.ReportMetric(rates[pairs/2], "tokens/s-unmeasured")
	b.Logf("rate: %.3f (95 %%: %.3f to %.3f) of %.1f tokens/s; CPU time: %.3f (%.3f to %.3f)", ratios[pairs/2], ratios[6], ratios[17],
		rates[pairs/2], cpu[pairs/2], cpu[6], cpu[17])
	b.Logf("%d reads in %.1f ms; %d answers waited for, %.1f ms", cost.Reads, float64(cost.ReadNS)/1e6, cost.Waits, float64(cost.WaitNS)/1e6)
	if ratios[6] < atLeast {
		b.Errorf("measured, an engine decodes at %.3f (95 %%: %.3f to %.3f) of its speed, want at least %.2f", ratios[pairs/2], ratios[6], ratios[17], atLeast)
	}
}

// BenchmarkReads tells what one reading of each source takes: until it is there, and of the browser's and this program's CPU time.
func BenchmarkReads(b *testing.B) {
	c, m := tinyModel(b)
	o := opened(b, c, page.Files())
	if err := o.session.Load(b.Context(), m); err != nil {
		b.Fatal(err)
	}
	o.decode(b)
	seen := map[string]bool{}
	for _, s := range o.probe.Attached() {
		d := s.Describe()
		name := d.Method + "/" + d.Role
		if seen[name] {
			continue
		}
		seen[name] = true
		b.Run(name, func(b *testing.B) {
			before := o.cpu(b)
			for b.Loop() {
				r := record.NewSample()
				if err := s.Read(b.Context(), &r); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64((o.cpu(b)-before).Microseconds())/float64(b.N), "CPU-µs/op")
		})
	}
}

// kept is a source that outlives the sampler. The ledger has nothing to let go of, and must keep its other methods.
func kept(s sample.Source) sample.Source {
	if l, ok := s.(*ledger); ok {
		return l
	}
	return struct{ sample.Source }{s}
}

type open struct {
	session *session
	probe   *enginetest.Probe
}

// opened is a session whose page is served from files.
func opened(b *testing.B, c Config, files fs.FS) *open {
	b.Helper()
	code, err := c.Bundle.read()
	if err != nil {
		b.Fatal(err)
	}
	server, err := serve(files, code)
	if err != nil {
		b.Fatal(err)
	}
	path, err := FindChrome(c.Chrome)
	if err != nil {
		b.Fatal(err)
	}
	probe := &enginetest.Probe{}
	p, err := openTab(b.Context(), path, c, server, probe.Warn)
	if err != nil {
		b.Fatal(err)
	}
	s := &session{webllm: New(c), tab: p, probe: probe, path: path}
	b.Cleanup(func() {
		if err := s.Close(); err != nil {
			b.Error(err)
		}
	})
	if err := s.introduce(b.Context()); err != nil {
		b.Fatal(err)
	}
	return &open{s, probe}
}

// without is the page's files with one of them replaced.
func without(b *testing.B, name, text string) fs.FS {
	b.Helper()
	files := fstest.MapFS{}
	names, err := fs.Glob(page.Files(), "*.*")
	if err != nil {
		b.Fatal(err)
	}
	for _, other := range names {
		data, err := fs.ReadFile(page.Files(), other)
		if err != nil {
			b.Fatal(err)
		}
		files[other] = &fstest.MapFile{Data: data}
	}
	files[name] = &fstest.MapFile{Data: []byte(text)}
	return files
}

// decode gives the rate of one generation, and the CPU time that the browser and this program took for it.
func (o *open) decode(b *testing.B) (rate float64, cpu time.Duration) {
	b.Helper()
	before := o.cpu(b)
	var first, last time.Time
	n := 0
	_, err := o.session.Generate(b.Context(), engine.Request{Prompt: "The quick brown fox", MaxTokens: long, IgnoreEOS: true}, func(t record.Token) {
		if n == 0 {
			first = t.At
		}
		last = t.At
		n++
	})
	if err != nil {
		b.Fatal(err)
	}
	return float64(n-1) / last.Sub(first).Seconds(), o.cpu(b) - before
}

// cpu is the CPU time so far of the browser's processes and of this one.
func (o *open) cpu(b *testing.B) time.Duration {
	b.Helper()
	var sum float64
	for _, pid := range append(group(o.session.tab.chrome.pid), os.Getpid()) {
		p, err := procfs.NewProc(pid)
		if err != nil {
			b.Fatal(err)
		}
		stat, err := p.Stat()
		if err != nil {
			b.Fatal(err)
		}
		sum += stat.CPUTime()
	}
	return time.Duration(sum * float64(time.Second))
}
