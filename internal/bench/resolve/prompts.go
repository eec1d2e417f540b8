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

// source completes a cell from a file: its first prompt, its number of requests, and the longest, for predicting
// memory.
func (c cache) source(p *plan.Plan, cell *record.Cell) error {
	s := p.Source(cell)
	if s == nil {
		return nil
	}
	read, err := c.read(s)
	switch {
	case err != nil:
		return err
	case s.File != "":
		cell.Prompt = read.text
	case s.Conversation != nil:
		cell.Prompt = s.Conversation[0]
	case s.Dataset != "":
		cell.Prompt = read.items[0].Turns[0]
		for _, item := range read.items {
			cell.MaxTokens = max(cell.MaxTokens, item.MaxTokens)
		}
	default: // a trace, which has traffic
		t := cell.Traffic
		t.Trace, t.Requests, cell.MaxTokens = read.trace, len(read.trace)*max(1, t.Turns), 0
		for _, a := range read.trace {
			cell.InputTokens, cell.MaxTokens = max(cell.InputTokens, a.InputTokens), max(cell.MaxTokens, a.MaxTokens)
		}
	}
	return nil
}

// write generates the prompts of requested lengths. The same length has the same text in all setups of a model.
// A dry run makes none for a model that only a server has, or that is not downloaded yet.
func (r *Resolver) write(ctx context.Context, s *Chosen, c *record.Cell) error {
	if r.Dry && s.Model.Path == "" {
		return nil
	}
	if c.Prompt == "" && c.InputTokens > 0 {
		text, err := r.ofLength(ctx, s, c.InputTokens)
		if err != nil {
			return fmt.Errorf("input_lengths: %d: %w", c.InputTokens, err)
		}
		c.Prompt = text
	}
	if c.Traffic == nil {
		return nil
	}
	for i := range c.Traffic.Mix {
		k := &c.Traffic.Mix[i]
		if k.Prompt != "" || k.InputTokens == 0 {
			continue
		}
		text, err := r.ofLength(ctx, s, k.InputTokens)
		if err != nil {
			return fmt.Errorf("traffic.mix: %s: %w", k.Name, err)
		}
		k.Prompt = text
	}
	for _, n := range lengths(c) {
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
func (r *Resolver) ofLength(ctx context.Context, s *Chosen, n int) (string, error) {
	maker, err := r.maker(ctx, s)
	if err != nil {
		return "", err
	}
	return once(r.cache, [4]any{"made", maker, n, s.Plan.Seed}, func() (string, error) {
		return maker.OfLength(n, s.Plan.Seed)
	})
}

// maker makes prompts by the model's vocabulary, or by the counts of the first server that has the model.
func (r *Resolver) maker(ctx context.Context, s *Chosen) (*prompts.Maker, error) {
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

// questions returns what a cell's requests ask, as far as known in advance: without the answers in a conversation.
func (c cache) questions(p *plan.Plan, of *record.Cell) []question {
	source := p.Source(of)
	read, _ := c.read(source) // source reports errors
	t := of.Traffic
	var out []question
	switch {
	case t == nil:
	case len(t.Mix) > 0:
		for _, k := range t.Mix {
			q := question{cmp.Or(k.Prompt, of.Prompt), k.InputTokens, cmp.Or(k.MaxTokens, of.MaxTokens)}
			if k.Prompt == "" && k.InputTokens == 0 {
				q.in = of.InputTokens
			}
			out = append(out, q)
		}
	case len(read.trace) > 0:
		for _, a := range read.trace {
			out = append(out, question{"", a.InputTokens, a.MaxTokens})
		}
	case len(read.items) > 0:
		for _, item := range read.items[:min(len(read.items), max(1, t.Requests/max(1, t.Turns)))] {
			out = append(out, question{conversation(item.Turns, t.Turns), 0, cmp.Or(item.MaxTokens, of.MaxTokens)})
		}
	case source != nil && len(source.Conversation) > 0:
		out = append(out, question{conversation(source.Conversation, t.Turns), 0, of.MaxTokens})
	}
	if len(out) == 0 {
		out = append(out, question{of.Prompt, of.InputTokens, of.MaxTokens})
	}
	return out
}

// conversation returns the known part of the last turn's prompt.
func conversation(turns []string, n int) string {
	return strings.Join(turns[:min(len(turns), max(1, n))], "\n")
}

// asks generates a cell's prompts and checks them: the vocabulary may lack characters, which an engine would drop
// silently, and the prompt may not fit into the context. err is for every engine, tooLong for those that tokenise by
// the model's file.
func (r *Resolver) asks(ctx context.Context, s *Chosen, cell *record.Cell) (err, tooLong error) {
	c, m := r.cache, s.Model
	if s.err != nil {
		return nil, nil
	}
	err = r.write(ctx, s, cell)
	if !m.Reads() || m.Path == "" {
		return err, nil
	}
	for _, q := range c.questions(&s.Plan, cell) {
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
func lengths(c *record.Cell) []int {
	out := []int{c.InputTokens}
	for _, a := range c.Traffic.Trace {
		out = append(out, a.InputTokens)
	}
	for _, k := range c.Traffic.Mix {
		out = append(out, k.InputTokens)
	}
	slices.Sort(out)
	return slices.DeleteFunc(slices.Compact(out), func(n int) bool { return n == 0 })
}

// ask returns a function that returns each request of a setup's traffic. Each request of a launch has a fresh prompt,
// so that none is found in a cache; repetitions repeat the same prompts.
func (r *Resolver) ask(ctx context.Context, s *Chosen) func(record.Cell, traffic.Request) engine.Request {
	askers := map[int]*prompts.Asker{}
	for i := range s.Cells {
		c := &s.Cells[i]
		if c.Traffic == nil || askers[c.PromptID] != nil {
			continue
		}
		source := s.Plan.Source(c)
		read, _ := r.read(source) // errors were reported before
		a := &prompts.Asker{Items: read.items}
		if source != nil {
			a.Turns = source.Conversation
		}
		if len(lengths(c)) > 0 {
			a.Maker, _ = r.maker(ctx, s)
		}
		askers[c.PromptID] = a
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
func (r *Resolver) chat(ctx context.Context, out *Resolved, s *Chosen) error {
	m := s.Model
	switch {
	case !s.Plan.Chat:
		// no template improves the text of random weights or of a base model
		own := !m.Random() && !strings.Contains(strings.ToLower(m.Name), "base")
		prompted := slices.ContainsFunc(s.Cells, func(c record.Cell) bool { return c.Prompt != "" })
		if m.Template && own && prompted {
			out.note(fmt.Sprintf("%s has a chat template, but prompts are passed without it; use --chat to apply it", m.Name))
		}
		return nil
	case !m.Reference():
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
	eachText(s.Cells, func(text *string) {
		if of, raw := made[*text]; raw {
			*text, s.ids[of.Text] = of.Text, of.IDs
		}
	})
	return err
}

// rendered returns what the template makes of all texts of the plan, by text: one engine is started for them.
func (r *Resolver) rendered(ctx context.Context, out *Resolved, s *Chosen) (map[string]engine.Rendered, error) {
	texts, _ := once(r.cache, "texts", func() (texts []string, err error) { // before any is replaced
		eachText(out.Cells, func(text *string) {
			if *text != "" && !slices.Contains(texts, *text) {
				texts = append(texts, *text)
			}
		})
		return texts, nil
	})
	all, err := r.Chat(ctx, s.Plan, s.Model, texts)
	made := map[string]engine.Rendered{}
	for i, of := range all {
		made[texts[i]] = of
	}
	return made, err
}

// eachText calls with each text of cells.
func eachText(cells []record.Cell, call func(text *string)) {
	for i := range cells {
		call(&cells[i].Prompt)
		if t := cells[i].Traffic; t != nil {
			for k := range t.Mix {
				call(&t.Mix[k].Prompt)
			}
		}
	}
}
