package plan

import "llmparity/internal/record"

// Setup is a plan whose axes have one value each, but for those that need no launch of their own: its Shapes.
type Setup struct {
	ID     int  // from 1, in the plan's order
	Plan   Plan // its lists of axes are empty, and what they said stands in Model, DType, KVDType, WebLLMVersion, Context, Slots, Start
	Shapes []Shape
}

// Shape is what is asked of an engine in a cell.
type Shape struct {
	PromptID    int    // from 1 within the plan; the same text has the same number in every setup
	Prompt      string // empty where InputTokens says how long it is to be: who knows the model's tokenizer makes it
	InputTokens int
	MaxTokens   int
	Traffic     *record.Traffic // nil: one request
}
