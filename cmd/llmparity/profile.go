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

// profileFlags say which files for the browser's own tools a run writes.
type profileFlags struct {
	kinds  map[engine.Profile]*bool
	phases []string
}

// profileKinds are the kinds of profiles, in the order of the help, and what they are.
var profileKinds = []struct {
	kind engine.Profile
	what string
}{
	{engine.HeapSnapshot, "write heap snapshots of the page at the ends of phases (.heapsnapshot)"},
	{engine.SamplingProfile, "write which code allocated what is alive at a phase's end (.heapprofile)"},
	{engine.Trace, "write traces of phases (.trace.json)"},
	{engine.CPUProfile, "write CPU profiles of phases (.cpuprofile)"},
}

// phaseNames are those of every launch of a browser, in order.
var phaseNames = []string{string(record.Baseline), string(record.Load), string(record.Warmup), string(record.Measure),
	string(record.Idle), string(record.Unload)}

func (f *profileFlags) register(flags *pflag.FlagSet) {
	f.kinds = map[engine.Profile]*bool{}
	for _, k := range profileKinds {
		f.kinds[k.kind] = flags.Bool(string(k.kind), false, k.what+", for Chrome's DevTools")
	}
	flags.StringSliceVar(&f.phases, "profile-phases", []string{string(record.Load), string(record.Measure)},
		"the phases that are profiled: "+strings.Join(phaseNames, ", "))
}

// profiles checks what was given.
func (f *profileFlags) profiles() (run.Profiles, error) {
	var p run.Profiles
	for _, k := range profileKinds {
		if *f.kinds[k.kind] {
			p.Kinds = append(p.Kinds, k.kind)
		}
	}
	for _, name := range f.phases {
		if !slices.Contains(phaseNames, name) {
			return p, fault.New(fault.Usage, "there are: "+strings.Join(phaseNames, ", "),
				"--profile-phases %s is no phase", name)
		}
		p.Phases = append(p.Phases, record.Phase(name))
	}
	return p, nil
}
