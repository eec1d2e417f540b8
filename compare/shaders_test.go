package compare_test

import (
	"slices"
	"strings"
	"testing"

	"llmparity/compare"
	"llmparity/compare/answer"
	"llmparity/compare/comparetest"
	"llmparity/compare/explain"
	"llmparity/internal/figure"
	"llmparity/internal/kit/check"
	"llmparity/internal/record"
)

// pages are engines in browsers on one adapter, each with a library of its own and slower than the one before.
func pages(device record.Device, libraries ...string) []comparetest.Engine {
	var out []comparetest.Engine
	for i, library := range libraries {
		e := comparetest.Browser(6)
		e.Cell.ID, e.Cell.Setup, e.Cell.Engine = i+1, i+1, "page"+library
		e.Info.Name, e.Info.Title, e.Info.Computes, e.Info.Library = e.Cell.Engine, "", library, nil
		e.Device = device
		e.Token, e.TTFT = e.Token<<i, e.TTFT<<i
		out = append(out, e)
	}
	return out
}

var (
	gpu      = record.Device{Class: record.GPU, Name: "nvidia lovelace"}
	software = record.Device{Class: record.SoftwareAdapter, Name: "SwiftShader"}
)

// coded are the reasons with a code.
func coded(r *compare.Result, of explain.Reason) (out []compare.Reason) {
	for _, d := range r.Reasons {
		if d.Code == of.Code {
			out = append(out, d)
		}
	}
	return out
}

func has(c *compare.Comparison, name string) bool {
	for _, x := range c.Ratios {
		if x.Figure == name {
			return true
		}
	}
	return false
}

func TestOneAdapterWithOtherShadersIsLabelled(t *testing.T) {
	r := compare.Runs(comparetest.Run(t, "gpu", pages(gpu, "tvm", "ggml", "onnxruntime")...))
	labels := coded(r, explain.OtherShaders)
	if len(labels) != 3 || len(r.Comparisons) != 3 {
		t.Fatalf("%d labels of %d pairs", len(labels), len(r.Comparisons))
	}
	check.Has(t, labels[0].Text, "same device, other shaders: pagetvm computes with tvm, pageggml with ggml, on nvidia lovelace")
	for i := range r.Comparisons {
		c := &r.Comparisons[i]
		if !slices.ContainsFunc(c.Caveats, func(s string) bool { return strings.HasPrefix(s, explain.SameDevice) }) ||
			!has(c, figure.DecodeTPS) {
			t.Errorf("pair %d: caveats %q", i, c.Caveats)
		}
	}
	a := answer.Of(r)
	check.Has(t, a.Sub(), "same device, other shaders")
	check.Has(t, a.Speed.Sentence(), "Fastest: pagetvm")
}

// On a software adapter ids, memory and CPU time count, and no speed is compared between engines.
func TestSpeedOnASoftwareAdapterIsNotCompared(t *testing.T) {
	r := compare.Runs(comparetest.Run(t, "software", pages(software, "tvm", "ggml", "onnxruntime")...))
	if len(coded(r, explain.SoftwareSpeeds)) != 1 || len(coded(r, explain.OtherShaders)) != 3 {
		t.Errorf("reasons: %+v", r.Reasons)
	}
	for i := range r.Comparisons {
		c := &r.Comparisons[i]
		for _, name := range []string{figure.DecodeTPS, figure.PrefillTPS, figure.TTFT, figure.LoadTime} {
			if has(c, name) {
				t.Errorf("pair %d has a ratio of %s", i, name)
			}
		}
		if !has(c, figure.PeakPSS) || c.Refused != "" {
			t.Errorf("pair %d has no ratio of its memory: %s", i, c.Refused)
		}
	}
	a := answer.Of(r)
	check.Has(t, a.Speed.Sentence(), "Not comparable here", "shaders are written for GPUs, and SwiftShader runs them on the CPU")
	for _, claim := range []string{"times", "faster", "Fastest", "slower"} {
		if strings.Contains(a.Speed.Sentence(), claim) {
			t.Errorf("%q claims a difference", a.Speed.Sentence())
		}
	}
	check.Has(t, a.Output.Sentence(), "Same tokens")
	check.Has(t, a.Quote.Sentence(), "Memory and output only")
}

// Settings of one engine, or another device, are no other shaders.
func TestUnlikePagesAreNotLabelled(t *testing.T) {
	for name, change := range map[string]func(*comparetest.Engine){
		"library": func(e *comparetest.Engine) { e.Info.Computes = "tvm" },
		"unknown": func(e *comparetest.Engine) { e.Info.Computes = "" },
		"adapter": func(e *comparetest.Engine) { e.Device.Name = "intel xe" },
		"native":  func(e *comparetest.Engine) { e.Info.Parts = nil },
		"CPU":     func(e *comparetest.Engine) { e.Device = comparetest.Native(6).Device },
	} {
		both := pages(gpu, "tvm", "ggml")
		change(&both[1])
		if all := coded(compare.Runs(comparetest.Run(t, "unlike", both...)), explain.OtherShaders); len(all) > 0 {
			t.Errorf("other %s: %s", name, all[0].Text)
		}
	}
	both := pages(software, "tvm", "tvm")
	both[1].Cell.Settings = map[string]string{"version": "0.2.80"}
	r := compare.Runs(comparetest.Run(t, "versions", both...))
	if len(r.Comparisons) == 0 || !has(&r.Comparisons[0], figure.DecodeTPS) ||
		len(coded(r, explain.BothSoftware)) == 0 {
		t.Errorf("versions of one engine: %+v", r.Reasons)
	}
}

// Beside a native engine, the label names those that it is about.
func TestLabelNamesItsEngines(t *testing.T) {
	all := append(pages(gpu, "tvm", "ggml"), comparetest.Native(6))
	all[2].Cell.ID, all[2].Cell.Setup = 3, 3
	check.Has(t, answer.Of(compare.Runs(comparetest.Run(t, "three", all...))).Sub(),
		"pagetvm and pageggml: same device, other shaders")
}
