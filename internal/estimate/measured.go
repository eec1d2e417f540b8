package estimate

import (
	"llmparity/internal/engine"
)

// What a record has beside the components that a run measures, under names that no measurement has.
const (
	Program       = "program"        // what is Framework here: the engine's own program
	TotalReserved = "total_reserved" // what is Total here: if all that is reserved were touched
)

// AsMeasured gives the components under the definitions that a run measures by, so that figures of one name can be held
// against each other: the framework's overhead is what is left of the increase when the other components are taken off,
// and the total is the peak. Where the increase is not predicted, or what is there before it isn't, neither is what
// comes of it.
func (e Estimate) AsMeasured() []Component {
	var out []Component
	for _, c := range e.Components {
		switch c.Name {
		case Framework:
			if left, ok := e.leftOver(); ok {
				out = append(out, left)
			}
			c.Name = Program
		case Total:
			c.Name, c.Method = TotalReserved, "the sum of what is reserved, and the program: if all of it were touched"
		case TotalUsed:
			continue // of reserved sizes, and beside a peak easily taken for a part of it
		}
		out = append(out, c)
	}
	if all := e.Component(Increase); all.Name != "" && e.Setup.Engine.Before == 0 {
		all.Name, all.Method = Total, "the increase: no process is there before the load"
		out = append(out, all)
	}
	return out
}

// leftOver is what a difference leaves for the framework: the program, less what of the workspaces is reserved and not
// touched. It can be below zero.
func (e Estimate) leftOver() (Component, bool) {
	all := e.Component(Increase)
	if all.Name == "" {
		return Component{}, false
	}
	program, reserved := e.Component(Framework), e.Component(Activation)
	c := Component{Name: Framework, Confidence: Low, Low: program.Low, Best: all.Best, High: program.High,
		Method: "by difference: the increase less weights, KV cache (reserved) and activations; that is the program"}
	for _, name := range []string{Weights, KVReserved, Activation} {
		c.Best -= e.Component(name).Best
	}
	if e.runs(engine.GGML) {
		touched, _ := e.touched()
		c.Low += min(touched.Low-reserved.High, 0)
		c.Method += ", less what of the activations is reserved and not touched"
	}
	c.Method += " (" + program.Method + ")"
	return c, true
}
