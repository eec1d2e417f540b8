package engine

// Settled is an engine that can say, before it is opened, with which settings it will run a model, as far as they bear
// on memory. They have the names that EngineInfo.Policy has, under which the record tells later what they really were.
// What it can't know yet is left out. An engine that prepares is asked when it has.
type Settled interface {
	Settings(Model) map[string]string
}
