package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// grace is how long a cancelled call waits for the page to stop. A step of a large model on a slow adapter takes
// longer; then the call ends later, and the next one waits for it.
const grace = 2 * time.Second

// Call evaluates an expression in the engine's thread and waits for its promise.
func Call[T any](ctx context.Context, p *Page, expression string) (T, error) {
	return callIn[T](ctx, p, p.thread, expression)
}

func callIn[T any](ctx context.Context, p *Page, thread Thread, expression string) (T, error) {
	var v T
	text, err := p.tab.Evaluate(ctx, thread, expression)
	if err != nil {
		return v, p.errorOf(err)
	}
	if len(text) > 0 {
		if err := json.Unmarshal(text, &v); err != nil {
			return v, fmt.Errorf("reading the page's answer: %w", err)
		}
	}
	return v, nil
}

// CallWith calls a function of the engine's script with one argument.
func CallWith[T any](ctx context.Context, p *Page, function string, argument any) (T, error) {
	expression, err := expressionOf(function, argument)
	if err != nil {
		var none T
		return none, err
	}
	return Call[T](ctx, p, expression)
}

// expressionOf returns the call of a function with one argument.
func expressionOf(function string, argument any) (string, error) {
	text, err := json.Marshal(argument)
	if err != nil {
		return "", fmt.Errorf("encoding the argument of %s: %w", function, err)
	}
	return fmt.Sprintf("%s(%s)", function, text), nil
}

// Long is CallWith for long calls. take receives what the page reports meanwhile, all of it before Long returns. If
// ctx ends, the expression stop tells the page to stop, and Long waits for up to grace. If the call is not done by
// then, it continues, and Settle waits for it.
func Long[T any](ctx context.Context, p *Page, stop, function string, argument any, take func(Told)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done, pending := make(chan result, 1), make(chan struct{})
	go func() {
		defer close(pending)
		v, err := CallWith[T](p.tab.Context(), p, function, argument)
		done <- result{v, err}
	}()
	for ctx.Err() == nil {
		select {
		case <-p.news:
			take(p.take())
		case r := <-done:
			take(p.take())
			return r.value, r.err
		case <-ctx.Done():
		}
	}
	p.pending = pending
	limit, cancel := context.WithTimeout(p.tab.Context(), grace)
	defer cancel()
	var r result
	if _, err := Call[any](limit, p, stop); err == nil {
		select {
		case r = <-done:
		case <-limit.Done():
		}
	}
	take(p.take())
	if lost := p.lost(); lost != nil {
		return r.value, lost
	}
	return r.value, ctx.Err()
}

// Settle waits for a cancelled call, and returns an error if the page is lost. Reports of earlier calls are discarded.
func (p *Page) Settle(ctx context.Context) error {
	if p.pending != nil {
		select {
		case <-p.pending:
			p.pending = nil
		case <-ctx.Done():
			return fmt.Errorf("waiting for the page to end a cancelled call: %w", ctx.Err())
		}
	}
	p.mu.Lock()
	p.abort, p.told = "", Told{}
	p.mu.Unlock()
	return p.lost()
}

// lost returns how the page was lost; nil if it was not.
func (p *Page) lost() error { return p.tab.Lost() }
