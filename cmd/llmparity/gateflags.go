package main

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"llmparity/internal/fault"
	"llmparity/internal/gates"
)

// judgeFlags say how a gate decides. They are no part of a plan: the same run can be judged again in another way.
type judgeFlags struct {
	detect       []string
	underTest    []string
	inconclusive string
	noBaseline   string
}

func (f *judgeFlags) register(flags *pflag.FlagSet) {
	flags.StringArrayVar(&f.detect, "detect", nil,
		"SHARE or figure=SHARE: the smallest regression that passing checks against the baseline run must "+
			"rule out, never less than the tolerance; may be given several times (default: 15% of times and rates, 5% of memory)")
	flags.StringSliceVar(&f.underTest, "under-test", nil,
		"what may differ from the baseline run: "+strings.Join(gates.UnderTests(), ", ")+
			" (default all: everything but the model and the machine)")
	flags.StringVar(&f.inconclusive, "inconclusive", "",
		"what an inconclusive gate does: error (exit code 5), warn or off (default: the gate's, else error)")
	flags.StringVar(&f.noBaseline, "no-baseline", "",
		"ok: pass where there is no baseline run yet (default: such checks are inconclusive)")
}

// over is a gate with what flags say of it; the gate itself stays as it is.
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
