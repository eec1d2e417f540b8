package resolve

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"llmparity/internal/engine"
	"llmparity/internal/fault"
	"llmparity/internal/model"
	"llmparity/internal/plan"
)

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
	case m.Format != model.GGUF:
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
