package main

import (
	"os"

	"github.com/spf13/pflag"

	"llmparity/cmd/llmparity/help"
	"llmparity/compare/gate"
	"llmparity/internal/bench/plan"
	"llmparity/internal/gates"
	"llmparity/internal/kinds"
	"llmparity/internal/kit/fault"
)

// checkFlags are the checks of a gate.
type checkFlags struct {
	max, min, changes     []string
	agreement, thresholds string
}

const checkNames = "max min vs-baseline min-agreement thresholds"

func (f *checkFlags) register(flags *pflag.FlagSet) {
	flags.StringArrayVar(&f.max, "max", nil, "limit: the median may not be higher, e.g. peak_pss_mb=900; repeatable")
	flags.StringArrayVar(&f.min, "min", nil, "limit: the median may not be lower, e.g. decode_tps=20; repeatable")
	flags.StringArrayVar(&f.changes, "vs-baseline", nil,
		"tolerance: how much worse than the baseline run a figure may be, e.g. decode_tps=-5%, or "+
			"ttft_ms=+10%,warn; repeatable")
	flags.StringVar(&f.agreement, "min-agreement", "",
		"limit: smallest allowed share of the output in which engines generate the same tokens, e.g. 100%")
	flags.StringVar(&f.thresholds, "thresholds", "", "YAML file with the contents of a plan's \"gate\", instead of the run's")
	help.Under(flags, "Checks", checkNames)
}

// given tells whether any of the flags was.
func (f *checkFlags) given() bool {
	return len(f.max)+len(f.min)+len(f.changes) > 0 || f.agreement+f.thresholds != ""
}

// gate returns the checks of the file, else of the plan of a run's folder, with those of flags. Without a folder
// there is no plan.
func (f *checkFlags) gate(dir string) (*gates.Gate, error) {
	var g *gates.Gate
	var err error
	if f.thresholds == "" && dir == "" {
		g = &gates.Gate{}
	} else if f.thresholds == "" {
		g, err = gate.Planned(dir, func(text []byte, file string) (*gates.Gate, error) {
			return plan.GateIn(text, file, kinds.All...)
		})
	} else if text, unread := os.ReadFile(f.thresholds); unread != nil {
		err = fault.Wrap(fault.Usage, unread, "", "--thresholds")
	} else {
		g, err = plan.ParseGate(text, f.thresholds, kinds.All...)
	}
	if err != nil {
		return nil, err
	}
	// Else a flag for one figure would drop the defaults that found a regression in another.
	if len(f.changes) > 0 && f.thresholds == "" && dir != "" {
		g = g.Against()
		g.Default = false
	}
	return g, f.add(g)
}

// add adds the checks of flags to a gate.
func (f *checkFlags) add(g *gates.Gate) error {
	for _, flag := range []struct {
		name   string
		values []string
		add    func(string) error
	}{{"max", f.max, g.MaxFlag}, {"min", f.min, g.MinFlag}, {"vs-baseline", f.changes, g.ChangeFlag}} {
		for _, v := range flag.values {
			if err := flag.add(v); err != nil {
				return fault.Wrap(fault.Usage, err, "", "--%s %s", flag.name, v)
			}
		}
	}
	if f.agreement != "" {
		least, err := gates.ParseShare(f.agreement)
		if err != nil {
			return fault.Wrap(fault.Usage, err, "", "--min-agreement")
		}
		if g.Parity == nil {
			g.Parity = &gates.Parity{}
		}
		g.Parity.MinAgreement = gates.Share(least)
	}
	if err := g.Validate(); err != nil {
		return fault.Wrap(fault.Usage, err, "", "the checks given by flags")
	}
	return nil
}
