package main

import (
	"context"
	"os/exec"

	"llmparity/assets/charts"
	"llmparity/internal/engine"
	"llmparity/internal/fault"
	"llmparity/internal/kinds"
)

// searches are in the order in which what is missing counts.
func (f *doctorFlags) searches(dir string) []engine.Search {
	var out []engine.Search
	for _, k := range kinds.All {
		if k.Parts == nil {
			continue
		}
		for _, s := range k.Parts(f.chosen().Config(k), f.chosen().Settings) {
			if !f.quick || !s.Starts {
				out = append(out, s)
			}
		}
	}
	return append(out, engine.Search{Name: "echarts", Find: func(context.Context) engine.Part {
		_, _, err := charts.Libraries()
		return engine.Part{Detail: "inlined in reports", Err: err}
	}}, engine.Search{Name: "cache", Find: func(context.Context) engine.Part { return engine.Part{Path: dir} }},
		spare("node", "npm fetches what pages and reports need for make setup", "--version"),
		spare("go", "builds llmparity and engines", "version"))
}

// spare looks for a program that is not needed once llmparity is set up.
func spare(name, use string, question string) engine.Search {
	return engine.Search{Name: name, Find: func(ctx context.Context) engine.Part {
		path, err := exec.LookPath(name)
		if err != nil {
			return engine.Part{Absent: true, Detail: "not on PATH; " + use}
		}
		p := engine.Version(ctx, fault.Run, path, question)
		if p.Err != nil {
			return engine.Part{Absent: true, Path: path, Detail: "says nothing; " + use}
		}
		return p
	}}
}
