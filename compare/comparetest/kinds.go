package comparetest

import (
	"time"

	"llmparity/internal/record"
)

// Mapped gives an engine's processes the parts of their PSS: at the ends of phases, and once while the model is loaded,
// when the page holds copies of weights, and shares memory with the GPU process.
func Mapped(e Engine) Engine {
	for i, p := range e.Processes {
		source := record.Source{Role: p.Role, Method: record.MethodSmapsRollup, PID: 4000 + i, Start: uint64(90000 + i),
			Sees:  "parts of PSS",
			Blind: "what they are for"}
		held := func(loaded, copies float64, attempt int) []record.Value {
			anonymous := 0.4*p.Before + loaded*(p.Loaded-p.Before) + copies*float64(10+i+attempt)
			return kinds(anonymous+1+loaded+0.01*float64(attempt), 2+copies*float64(5+attempt), 0.3*p.Before+3*loaded)
		}
		e.Meters = append(e.Meters, Meter{Source: source,
			Read: func(phase record.Phase, attempt int, _ time.Duration) []record.Value {
				switch phase {
				case record.Baseline:
					return held(0, 0, 0)
				case record.Unload:
					return nil
				}
				return held(1, 0, attempt)
			}})
		peak := source
		peak.Every = time.Hour // once
		e.Meters = append(e.Meters, Meter{Source: peak,
			Read: func(phase record.Phase, attempt int, _ time.Duration) []record.Value {
				if phase != record.Load {
					return nil
				}
				return held(1, 1, attempt)
			}})
	}
	return e
}

func kinds(anonymous, shared, files float64) []record.Value {
	return record.Kinds{Anonymous: mib(anonymous), Shared: mib(shared), Files: mib(files)}.Values()
}
