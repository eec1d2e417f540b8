package resolve

import (
	"context"
	"fmt"
	"slices"

	"llmparity/internal/engine"
	"llmparity/internal/fault"
	"llmparity/internal/model"
	"llmparity/internal/plan"
	"llmparity/internal/tiny"
)

// chat renders a setup's prompts once with the model's own chat template, if the plan asks for it. A dry run only looks
// whether there is one.
func (r *Resolver) chat(ctx context.Context, out *Plan, s *Setup) error {
	m := s.Model
	switch {
	case !s.Plan.Chat:
		random := m.SHA256 == tiny.SHA256 // its text is meaningless in any case
		prompted := slices.ContainsFunc(s.Shapes, func(shape plan.Shape) bool { return shape.Prompt != "" })
		if m.Template && !random && prompted {
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
	s.ids = map[string][]int{}
	for i := range s.Shapes {
		shape := &s.Shapes[i]
		if err := r.rendered(ctx, s, &shape.Prompt); err != nil {
			return err
		}
		if shape.Traffic == nil {
			continue
		}
		for k := range shape.Traffic.Mix {
			if err := r.rendered(ctx, s, &shape.Traffic.Mix[k].Prompt); err != nil {
				return err
			}
		}
	}
	return nil
}

// rendered replaces a text by what the template makes of it.
func (r *Resolver) rendered(ctx context.Context, s *Setup, text *string) error {
	if _, done := s.ids[*text]; done || *text == "" {
		return nil
	}
	made, err := once(r.cache, [3]string{"chat", s.Model.Path, *text}, func() (engine.Rendered, error) {
		all, err := r.Chat(ctx, s.Plan, s.Model, []string{*text})
		if err != nil {
			return engine.Rendered{}, err
		}
		return all[0], nil
	})
	if err == nil {
		*text, s.ids[made.Text] = made.Text, made.IDs
	}
	return err
}
