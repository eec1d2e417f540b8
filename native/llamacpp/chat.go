package llamacpp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"llmparity/internal/engine"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models"
	"llmparity/native/wire"
)

var _ engine.Renderer = (*Engine)(nil)

// Chat renders texts in a server of its own, which has the model's template in Jinja.
func (l *Engine) Chat(ctx context.Context, m models.Model, texts []string) (out []engine.Rendered, err error) {
	if l.oneShot {
		return nil, fault.New(fault.NotSupported, "leave chat out", "%s cannot render chat templates", l.Name())
	}
	if err := l.Check(ctx, m); err != nil {
		return nil, err
	}
	opened, err := l.Open(ctx, engine.Unmeasured{})
	if err != nil {
		return nil, err
	}
	s := opened.(*session)
	defer func() { err = errors.Join(err, s.Close()) }()
	if m.Context == 0 || m.Context > chatContext {
		m.Context = chatContext // nothing is generated
	}
	if err := s.Load(ctx, m); err != nil {
		if strings.Contains(err.Error(), "--chat-template") { // it tries the template when it starts
			err = fault.New(fault.NotSupported, unrendered, "the chat template of %s cannot be rendered by llama-server", m.Name)
		}
		return nil, err
	}
	srv, err := s.own.Now()
	if err != nil {
		return nil, err
	}
	for _, text := range texts {
		r, err := srv.client.render(ctx, text)
		if refused := wire.RefusalOf(err); refused != nil {
			return nil, fault.New(fault.NotSupported, unrendered, "the chat template of %s cannot be rendered: %s",
				m.Name, refused.Message)
		} else if err != nil {
			return nil, fmt.Errorf("rendering the chat template: %w", err)
		}
		out = append(out, r)
	}
	return out, nil
}

const unrendered = "leave --chat out, or use another model"

// chatContext is small, because its memory is reserved.
const chatContext = 512

// render renders a text as the message of a user, and tokenises it.
func (c *client) render(ctx context.Context, text string) (r engine.Rendered, err error) {
	var answer struct {
		Prompt string `json:"prompt"`
	}
	message := map[string]string{"role": "user", "content": text}
	if err := c.Call(ctx, http.MethodPost, "/apply-template", map[string]any{"messages": []any{message}},
		&answer); err != nil {
		return r, err
	}
	r.Text = answer.Prompt
	r.IDs, err = c.tokenize(ctx, r.Text)
	return r, err
}
