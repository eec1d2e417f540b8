package main

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"llmparity/internal/engine"
	"llmparity/internal/fault"
	"llmparity/internal/record"
	"llmparity/internal/run"
)

// profileFlags choose the profiles that a browser records.
type profileFlags struct {
	kinds  map[engine.Profile]*bool
	phases []string
}

// profileKinds are the kinds of profiles, in the order of the help.
var profileKinds = []struct {
	kind engine.Profile
	what string
}{
	{engine.HeapSnapshot, "save a heap snapshot of the page at the end of each phase (.heapsnapshot)"},
	{engine.SamplingProfile, "save an allocation profile of each phase (.heapprofile)"},
	{engine.Trace, "save a trace of each phase (.trace.json)"},
	{engine.CPUProfile, "save a CPU profile of each phase (.cpuprofile)"},
}

// phaseNames are the phases of a browser's launch, in order.
var phaseNames = []string{string(record.Baseline), string(record.Load), string(record.Warmup), string(record.Measure),
	string(record.Idle), string(record.Unload)}

func (f *profileFlags) register(flags *pflag.FlagSet) {
	f.kinds = map[engine.Profile]*bool{}
	for _, k := range profileKinds {
		f.kinds[k.kind] = flags.Bool(string(k.kind), false, k.what)
		under(flags, "Profiles for Chrome DevTools", string(k.kind))
	}
	flags.StringSliceVar(&f.phases, "profile-phases", []string{string(record.Load), string(record.Measure)},
		"phases to profile: "+strings.Join(phaseNames, ", "))
	under(flags, "Profiles for Chrome DevTools", "profile-phases")
}

// profiles returns the profiles that were chosen.
func (f *profileFlags) profiles() (run.Profiles, error) {
	var p run.Profiles
	for _, k := range profileKinds {
		if *f.kinds[k.kind] {
			p.Kinds = append(p.Kinds, k.kind)
		}
	}
	for _, name := range f.phases {
		if !slices.Contains(phaseNames, name) {
			return p, fault.New(fault.Usage, didYouMean(name, phaseNames), "--profile-phases: unknown phase %q", name)
		}
		p.Phases = append(p.Phases, record.Phase(name))
	}
	return p, nil
}
