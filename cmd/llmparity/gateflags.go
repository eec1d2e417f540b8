package main

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"llmparity/internal/fault"
	"llmparity/internal/gates"
)

// judgeFlags say how a gate decides. They are not part of the plan, so that a run can be judged again.
type judgeFlags struct {
	detect       []string
	underTest    []string
	inconclusive string
	noBaseline   string
}

func (f *judgeFlags) register(flags *pflag.FlagSet) {
	flags.StringArrayVar(&f.detect, "detect", nil,
		"smallest regression that a pass rules out, e.g. 10% or decode_tps=10%; repeatable "+
			"(default 15% for times and rates, 5% for memory)")
	flags.StringSliceVar(&f.underTest, "under-test", nil,
		"what may differ from the baseline run: "+strings.Join(gates.UnderTests(), ", ")+
			" (default all: everything except model and machine)")
	flags.StringVar(&f.inconclusive, "inconclusive", "",
		"what an inconclusive gate does: error (exit code 5), warn or off (default error)")
	flags.StringVar(&f.noBaseline, "no-baseline", "", "ok: pass while there is no baseline run (default: inconclusive)")
	under(flags, "Gate", "detect under-test inconclusive no-baseline")
}

// over returns a copy of a gate, changed by the flags.
func (f *judgeFlags) over(g *gates.Gate) (*gates.Gate, error) {
	if g == nil {
		g = &gates.Gate{}
	}
	out := *g
	out.Changes = slices.Clone(g.Changes)
	if f.inconclusive != "" {
		out.Inconclusive = gates.Level(f.inconclusive)
	}
	if f.noBaseline != "" {
		out.NoBaseline = f.noBaseline
	}
	if len(f.underTest) > 0 {
		out.UnderTest = f.underTest
	}
	for _, text := range f.detect {
		if err := out.DetectFlag(text); err != nil {
			return nil, fault.Wrap(fault.Usage, err, "", "--detect %s", text)
		}
	}
	if err := out.Validate(); err != nil {
		text := err.Error()
		for _, field := range []string{"inconclusive", "no_baseline", "under_test"} {
			text = strings.Replace(text, "gate."+field, "--"+strings.ReplaceAll(field, "_", "-"), 1)
		}
		return nil, fault.New(fault.Usage, "", "%s", text)
	}
	return &out, nil
}
