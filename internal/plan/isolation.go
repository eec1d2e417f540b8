package plan

// What a repetition has of its own, as a plan says it.
const (
	// the engine is launched and the model loaded for each, which is what a plan that says nothing gets
	OfLaunch = "launch"
	Reused   = "reused" // one launch for all of a cell's repetitions, with its model
	Shared   = "shared" // one launch for all cells that an engine has in a setup, with their model
)
