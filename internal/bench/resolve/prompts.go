package resolve

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"llmparity/internal/bench/plan"
	"llmparity/internal/bench/prompts"
	"llmparity/internal/bench/traffic"
	"llmparity/internal/engine"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models"
	"llmparity/internal/models/tokenizer"
	"llmparity/internal/record"
)

// sourceText is the content of a file.
type sourceText struct {
	text  string
	items []prompts.Item
	trace []record.Arrival
}

// read reads a file once.
func (c cache) read(s *plan.Source) (sourceText, error) {
	if s == nil || s.Conversation != nil {
		return sourceText{}, nil
	}
	return once(c, [6]any{"file", s.File, s.Dataset, s.Trace, s.Field, s.Limit}, func() (out sourceText, err error) {
		switch {
		case s.File != "":
			out.text, err = prompts.ReadText(s.File) // without the line break that editors append
			out.text = strings.TrimSuffix(strings.TrimSuffix(out.text, "\n"), "\r")
		case s.Dataset != "":
			out.items, err = prompts.ReadData(s.Dataset, s.Field, s.Limit)
		case s.Trace != "":
			out.trace, err = prompts.ReadTrace(s.Trace, s.Limit)
		}
		return out, err
	})
}

// source completes a shape from a file: its first prompt, its number of requests, and the longest, for predicting
// memory.
func (c cache) source(shape *plan.Shape) error {
	s := shape.Source
	if s == nil || shape.Prompt != "" {
		return nil
	}
	read, err := c.read(s)
	switch {
	case err != nil:
		return err
	case s.File != "":
		shape.Prompt = read.text
	case s.Conversation != nil:
		shape.Prompt = s.Conversation[0]
	case s.Dataset != "":
		shape.Prompt = read.items[0].Turns[0]
		for _, item := range read.items {
			shape.MaxTokens = max(shape.MaxTokens, item.MaxTokens)
		}
	default: // a trace, which has traffic
		t := shape.Traffic
		t.Trace, t.Requests, shape.MaxTokens = read.trace, len(read.trace)*max(1, t.Turns), 0
		for _, a := range read.trace {
			shape.InputTokens, shape.MaxTokens = max(shape.InputTokens, a.InputTokens),
				max(shape.MaxTokens, a.MaxTokens)
		}
	}
	return nil
}

// write generates the prompts of requested lengths. The same length has the same text in all setups of a model.
// A dry run makes none for a model that only a server has, or that is not downloaded yet.
func (r *Resolver) write(ctx context.Context, s *Setup, shape *plan.Shape) error {
	if r.Dry && s.Model.Path == "" {
		return nil
	}
	if shape.Prompt == "" && shape.InputTokens > 0 {
		text, err := r.ofLength(ctx, s, shape.InputTokens)
		if err != nil {
			return fmt.Errorf("input_lengths: %d: %w", shape.InputTokens, err)
		}
		shape.Prompt = text
	}
	if shape.Traffic == nil {
		return nil
	}
	for i := range shape.Traffic.Mix {
		k := &shape.Traffic.Mix[i]
		if k.Prompt != "" || k.InputTokens == 0 {
			continue
		}
		text, err := r.ofLength(ctx, s, k.InputTokens)
		if err != nil {
			return fmt.Errorf("traffic.mix: %s: %w", k.Name, err)
		}
		k.Prompt = text
	}
	for _, n := range lengths(shape) {
		maker, err := r.maker(ctx, s)
		if err == nil {
			err = maker.Check(n)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// ofLength returns a prompt of exactly n tokens.
func (r *Resolver) ofLength(ctx context.Context, s *Setup, n int) (string, error) {
	maker, err := r.maker(ctx, s)
	if err != nil {
		return "", err
	}
	return once(r.cache, [4]any{"made", maker, n, s.Plan.Seed}, func() (string, error) {
		return maker.OfLength(n, s.Plan.Seed)
	})
}

// maker makes prompts by the model's vocabulary, or by the counts of the first server that has the model.
func (r *Resolver) maker(ctx context.Context, s *Setup) (*prompts.Maker, error) {
	m := s.Model
	var by *set
	if m.Format == record.Served {
		by = s.launch.set
	}
	return once(r.cache, [3]any{"maker", cmp.Or(m.Path, m.Name), by}, func() (*prompts.Maker, error) {
		tokens, err := r.tokenizer(m)
		if err == nil {
			return prompts.NewMaker(tokens)
		}
		for _, e := range s.launch.set.engines {
			if counter, ok := e.Engine.(engine.Counter); ok && by != nil && e.Caps().Served && e.Err == nil {
				return prompts.NewCounted(func(text string) (int, error) { return counter.Count(ctx, e.form(m), text) })
			}
		}
		return nil, fault.New(fault.NotSupported, "use texts as prompts", "tokens of %s cannot be counted: %s", m.Name,
			fault.What(err))
	})
}

func (c cache) tokenizer(m models.Model) (*tokenizer.Tokenizer, error) {
	return once(c, [2]string{"tokenizer", cmp.Or(m.Path, m.Name)}, func() (*tokenizer.Tokenizer, error) {
		return models.Tokenizer(m)
	})
}

// question is the prompt of a request, as a text or a number of tokens, and its output length.
type question struct {
	prompt  string
	in, out int
}

// questions returns what a shape's requests ask, as far as known in advance: without the answers in a conversation.
func (c cache) questions(s *plan.Shape) []question {
	read, _ := c.read(s.Source) // source reports errors
	t := s.Traffic
	var out []question
	switch {
	case t == nil:
	case len(t.Mix) > 0:
		for _, k := range t.Mix {
			q := question{cmp.Or(k.Prompt, s.Prompt), k.InputTokens, cmp.Or(k.MaxTokens, s.MaxTokens)}
			if k.Prompt == "" && k.InputTokens == 0 {
				q.in = s.InputTokens
			}
			out = append(out, q)
		}
	case len(read.trace) > 0:
		for _, a := range read.trace {
			out = append(out, question{"", a.InputTokens, a.MaxTokens})
		}
	case len(read.items) > 0:
		for _, item := range read.items[:min(len(read.items), max(1, t.Requests/max(1, t.Turns)))] {
			out = append(out, question{conversation(item.Turns, t.Turns), 0, cmp.Or(item.MaxTokens, s.MaxTokens)})
		}
	case s.Source != nil && len(s.Source.Conversation) > 0:
		out = append(out, question{conversation(s.Source.Conversation, t.Turns), 0, s.MaxTokens})
	}
	if len(out) == 0 {
		out = append(out, question{s.Prompt, s.InputTokens, s.MaxTokens})
	}
	return out
}

// conversation returns the known part of the last turn's prompt.
func conversation(turns []string, n int) string {
	return strings.Join(turns[:min(len(turns), max(1, n))], "\n")
}

// asks generates a shape's prompts and checks them: the vocabulary may lack characters, which an engine would drop
// silently, and the prompt may not fit into the context. err is for every engine, tooLong for those that tokenise by
// the model's file.
func (r *Resolver) asks(ctx context.Context, s *Setup, shape *plan.Shape) (err, tooLong error) {
	c, m := r.cache, s.Model
	if s.err != nil {
		return nil, nil
	}
	err = r.write(ctx, s, shape)
	if m.Format != models.GGUF && m.Format != models.WebLLM || m.Path == "" {
		return err, nil
	}
	for _, q := range c.questions(shape) {
		in := q.in
		if in == 0 && q.prompt != "" && err == nil {
			err = c.lacks(m, q.prompt)
		}
		if in == 0 && len(q.prompt)+1 > m.Context-q.out { // else it fits: a token has a byte, and one may be added
			in, _ = c.length(m, q.prompt)
		}
		if m.Context > 0 && in+q.out > m.Context && tooLong == nil {
			tooLong = fault.New(fault.PromptTooLong, "use shorter lengths or a larger context",
				"a prompt of %d tokens and %d tokens of output do not fit in a context of %d", in, q.out, m.Context)
		}
	}
	return err, tooLong
}

func (c cache) lacks(m models.Model, prompt string) error {
	_, err := once(c, [3]string{"lacks", m.Path, prompt}, func() (struct{}, error) {
		tokens, err := c.tokenizer(m)
		if err != nil {
			return struct{}{}, nil // engines may read it
		}
		if r, ok := tokens.Uncovered(prompt); ok {
			return struct{}{}, fault.New(fault.Usage, "remove it or choose another model",
				"the vocabulary of %s has no token for %q in the prompt", m.Path, r)
		}
		return struct{}{}, nil
	})
	return err
}

// length returns the number of tokens of a prompt.
func (c cache) length(m models.Model, text string) (int, error) {
	return once(c, [3]string{"length", m.Path, text}, func() (int, error) {
		tokens, err := c.tokenizer(m)
		if err != nil {
			return 0, err
		}
		return len(tokens.Prompt(text)), nil
	})
}

// lengths are those of which each request has its own prompt.
func lengths(s *plan.Shape) []int {
	out := []int{s.InputTokens}
	for _, a := range s.Traffic.Trace {
		out = append(out, a.InputTokens)
	}
	for _, k := range s.Traffic.Mix {
		out = append(out, k.InputTokens)
	}
	slices.Sort(out)
	return slices.DeleteFunc(slices.Compact(out), func(n int) bool { return n == 0 })
}

// ask returns a function that returns each request of a setup's traffic. Each request of a launch has a fresh prompt,
// so that none is found in a cache; repetitions repeat the same prompts.
func (r *Resolver) ask(ctx context.Context, s *Setup) func(record.Cell, traffic.Request) engine.Request {
	askers := map[int]*prompts.Asker{}
	for i := range s.Shapes {
		shape := &s.Shapes[i]
		if shape.Traffic == nil {
			continue
		}
		read, _ := r.read(shape.Source) // errors were reported before
		a := &prompts.Asker{Items: read.items}
		if shape.Source != nil {
			a.Turns = shape.Source.Conversation
		}
		if len(lengths(shape)) > 0 {
			a.Maker, _ = r.maker(ctx, s)
		}
		askers[shape.PromptID] = a
	}
	return func(cell record.Cell, q traffic.Request) engine.Request {
		asked, err := askers[cell.PromptID].Ask(cell, q)
		// no text of this length: use the cell's prompt; its length is reported
		if err != nil {
			asked.Prompt = cell.Prompt
		}
		asked.IDs = s.ids[asked.Prompt]
		return asked
	}
}

// chat renders a setup's prompts once with the model's own chat template, if the plan asks for it. A dry run only looks
// whether there is one.
func (r *Resolver) chat(ctx context.Context, out *Plan, s *Setup) error {
	m := s.Model
	switch {
	case !s.Plan.Chat:
		// no template improves the text of random weights or of a base model
		own := !m.Random() && !strings.Contains(strings.ToLower(m.Name), "base")
		prompted := slices.ContainsFunc(s.Shapes, func(shape plan.Shape) bool { return shape.Prompt != "" })
		if m.Template && own && prompted {
			out.note(fmt.Sprintf("%s has a chat template, but prompts are passed without it; use --chat to apply it", m.Name))
		}
		return nil
	case m.Format != models.GGUF:
		return fault.New(fault.NotSupported, "leave chat out, or name the model's GGUF",
			"chat: the template of %s cannot be read, because it is not a GGUF", m.Name)
	case !m.Template:
		return fault.New(fault.NotSupported, "leave chat out", "chat: %s has no chat template", m.Name)
	}
	for _, e := range s.launch.set.engines {
		if !e.Caps().TakesIDs {
			out.note(fmt.Sprintf("chat: %s gets the rendered text, because it takes no token ids", e.Name()))
		}
	}
	if r.Dry {
		return nil
	}
	made, err := once(r.cache, [2]string{"chat", m.Path}, func() (map[string]engine.Rendered, error) {
		return r.rendered(ctx, out, s)
	})
	s.ids = map[string][]int{}
	eachText(s.Shapes, func(text *string) {
		if of, raw := made[*text]; raw {
			*text, s.ids[of.Text] = of.Text, of.IDs
		}
	})
	return err
}

// rendered returns what the template makes of all texts of the plan, by text: one engine is started for them.
func (r *Resolver) rendered(ctx context.Context, out *Plan, s *Setup) (map[string]engine.Rendered, error) {
	var texts []string
	for planned := range out.Plan.Setups() {
		for i := range planned.Shapes {
			if err := r.source(&planned.Shapes[i]); err != nil {
				return nil, err
			}
		}
		eachText(planned.Shapes, func(text *string) {
			if *text != "" && !slices.Contains(texts, *text) {
				texts = append(texts, *text)
			}
		})
	}
	all, err := r.Chat(ctx, s.Plan, s.Model, texts)
	made := map[string]engine.Rendered{}
	for i, of := range all {
		made[texts[i]] = of
	}
	return made, err
}

// eachText calls with each text of shapes.
func eachText(shapes []plan.Shape, call func(text *string)) {
	for i := range shapes {
		call(&shapes[i].Prompt)
		if t := shapes[i].Traffic; t != nil {
			for k := range t.Mix {
				call(&t.Mix[k].Prompt)
			}
		}
	}
}
