package main

import (
	"llmparity/internal/engine"
	"llmparity/internal/fault"
	"llmparity/internal/plan"
	"llmparity/internal/prompts"
	"llmparity/internal/record"
	"llmparity/internal/traffic"
)

// readSource reads a data set, a trace or a conversation, as far as the shape of its cells hangs on it: what is asked
// first, how many requests there are, and how long the longest is, by which memory is foretold.
func (r *resolver) readSource(shape *plan.Shape) error {
	s := shape.Source
	var t record.Traffic
	if shape.Traffic != nil {
		t = *shape.Traffic // shapes share it
	}
	switch {
	case s.Conversation != nil:
		shape.Prompt = s.Conversation[0]
		return nil
	case s.Dataset != "":
		read := r.source(s)
		if read.err != nil {
			return read.err
		}
		shape.Prompt = read.items[0].Turns[0]
		for _, item := range read.items {
			shape.MaxTokens = max(shape.MaxTokens, item.MaxTokens)
		}
		return nil
	}
	if s.Trace == "" || shape.Traffic == nil {
		return fault.New(fault.Usage, "", "prompts: of this source nothing is known")
	}
	read := r.source(s)
	if read.err != nil {
		return read.err
	}
	arrivals := read.trace
	t.Trace, t.Requests = arrivals, len(arrivals)*max(1, t.Turns)
	shape.MaxTokens = 0
	for _, a := range arrivals {
		shape.InputTokens, shape.MaxTokens = max(shape.InputTokens, a.InputTokens), max(shape.MaxTokens, a.MaxTokens)
	}
	shape.Traffic = &t
	return nil
}

// asking says what each request of a setup's traffic asks. Prompts of a number of tokens are fresh ones in each request
// of a launch, so that none is found in a cache; repetitions ask the same again, also where they go on in one launch.
func (r *resolver) asking(s plan.Setup, m engine.Model) (func(record.Cell, traffic.Request) engine.Request, error) {
	askers := map[int]*prompts.Asker{}
	for _, shape := range s.Shapes {
		if shape.Traffic == nil {
			continue
		}
		a := &prompts.Asker{}
		if source := shape.Source; source != nil {
			a.Turns = source.Conversation
			if source.Dataset != "" {
				read := r.source(source)
				if read.err != nil {
					return nil, read.err
				}
				a.Items = read.items
			}
		}
		if ofLengths(shape) {
			found := r.maker(m)
			if found.err != nil {
				return nil, found.err
			}
			a.Maker = found.maker
			if err := a.Check(record.Cell{InputTokens: shape.InputTokens, Traffic: shape.Traffic}); err != nil {
				return nil, err
			}
		}
		askers[shape.PromptID] = a
	}
	return func(c record.Cell, q traffic.Request) engine.Request {
		asked, err := askers[c.PromptID].Ask(c, q)
		// such a length was possible with another text: the cell's own is asked, and its length is told where it is
		// another
		if err != nil {
			asked.Prompt = c.Prompt
		}
		return asked
	}, nil
}

// ofLengths tells whether prompts of a number of tokens are to be made.
func ofLengths(s plan.Shape) bool {
	for _, k := range s.Traffic.Mix {
		if k.InputTokens > 0 {
			return true
		}
	}
	return s.InputTokens > 0 || len(s.Traffic.Trace) > 0
}
