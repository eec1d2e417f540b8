package estimate

// AsMeasured returns the components as a run defines them, so that equal names can be compared: the framework overhead
// is the increase less the other components, and the total is the peak. Both are missing if the increase, or the memory
// before the load, is not predicted.
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
			c.Name, c.Method = TotalReserved, "sum of all reserved memory and the program"
		case TotalUsed:
			continue // easily mistaken for a part of the peak
		}
		out = append(out, c)
	}
	all, before := e.Component(Increase), e.Setup.Engine.Before
	if all.Name == "" || before != 0 && !e.runtime().starts {
		return out
	}
	all.Name, all.Method = Total, "the increase: no process exists before the load"
	if before != 0 {
		all.Low, all.Best, all.High = all.Low+before*17/20, all.Best+before, all.High+before
		all.Method = "the increase, and the process before the load, of which PSS is less where others share its libraries"
	}
	return append(out, all)
}

// leftOver predicts the framework overhead as a difference: the program less the reserved but untouched workspaces. It
// can be negative.
func (e Estimate) leftOver() (Component, bool) {
	all := e.Component(Increase)
	if all.Name == "" {
		return Component{}, false
	}
	program, reserved := e.Component(Framework), e.Component(Activation)
	c := Component{Name: Framework, Confidence: Low, Low: program.Low, Best: all.Best, High: program.High,
		Method: "the predicted increase minus weights, reserved KV cache and activations: mostly the program itself"}
	for _, name := range []string{Weights, KVReserved, Activation} {
		c.Best -= e.Component(name).Best
	}
	if e.touched.how != "" {
		c.Low += min(e.touched.Low-reserved.High, 0)
		c.Method += ", less workspaces that are never touched"
	}
	c.Method += ". For the program: " + program.Method
	return c, true
}
