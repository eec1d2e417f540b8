package firefox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"llmparity/browser/driver"
	"llmparity/internal/engine"
	"llmparity/internal/host/sample"
	"llmparity/internal/kit/fault"
)

// Listen sets who hears of the page's events.
func (t *Tab) Listen(l driver.Listener) { t.told.Store(&l) }

// hear passes on an event.
func (t *Tab) hear(method string, params json.RawMessage) {
	told := t.told.Load()
	if told == nil {
		return
	}
	var e struct {
		Channel string `json:"channel"`
		Data    remote `json:"data"`
		Type    string `json:"type"`
		Level   string `json:"level"`
		Text    string `json:"text"`
	}
	if json.Unmarshal(params, &e) != nil {
		return
	}
	switch {
	case method == "script.message" && e.Channel == driver.Binding:
		(*told).Reported(e.Data.text())
	case method != "log.entryAdded" || e.Level != "error":
	case e.Type == "javascript":
		(*told).Threw(&driver.Thrown{Text: fault.OneLine(e.Text)})
	case e.Type == "console":
		(*told).Said(e.Text)
	}
}

// remote is a value in the page; we only ask for texts.
type remote struct {
	Type  string          `json:"type"`
	Value json.RawMessage `json:"value"`
}

func (r remote) text() (s string) {
	_ = json.Unmarshal(r.Value, &s) // else it is none
	return s
}

// evaluated is the outcome of a script.
type evaluated struct {
	Type    string `json:"type"` // success or exception
	Result  remote `json:"result"`
	Details struct {
		Text      string `json:"text"`
		Exception remote `json:"exception"`
	} `json:"exceptionDetails"`
}

// Open opens our page.
func (t *Tab) Open(ctx context.Context, base, url string) error {
	t.base = base
	to := map[string]any{"context": t.context, "url": url, "wait": "complete"}
	err := t.call(ctx, "browsingContext.navigate", to, nil)
	if refused, ok := errors.AsType[*refusal](err); ok && strings.Contains(refused.text, "NS_BINDING_ABORTED") {
		return &driver.Aborted{Err: err}
	}
	return err
}

// Enter gives the page the binding for reports, a channel of BiDi's. Firefox lists workers but evaluates nothing in
// them, so the page passes on what its worker is asked and reports.
func (t *Tab) Enter(ctx context.Context, thread driver.Thread) error {
	t.thread = thread
	channel := map[string]any{"type": "channel", "value": map[string]any{"channel": driver.Binding}}
	return t.call(ctx, "script.callFunction", map[string]any{"target": t.target(), "awaitPromise": false,
		"functionDeclaration": "(tell) => { globalThis." + driver.Binding + " = tell; }",
		"arguments":           []any{channel}}, nil)
}

// target is where scripts run: in the page.
func (t *Tab) target() map[string]any { return map[string]any{"context": t.context} }

// Evaluate evaluates an expression in a thread and awaits its promise.
func (t *Tab) Evaluate(ctx context.Context, in driver.Thread, expression string) (json.RawMessage, error) {
	if in == driver.WorkerThread {
		quoted, err := json.Marshal(expression)
		if err != nil {
			return nil, fmt.Errorf("encoding an expression: %w", err)
		}
		text, err := t.evaluate(ctx, t.target(), "llmparityRelay("+string(quoted)+")")
		if err == nil && text != "" {
			err = json.Unmarshal([]byte(text), &text) // JSON of a text that is JSON
		}
		return json.RawMessage(text), err
	}
	text, err := t.evaluate(ctx, t.target(), expression)
	return json.RawMessage(text), err
}

// evaluate returns the JSON of what an expression becomes; empty: undefined.
func (t *Tab) evaluate(ctx context.Context, target map[string]any, expression string) (string, error) {
	var e evaluated
	err := t.call(ctx, "script.evaluate", map[string]any{"target": target, "awaitPromise": true,
		"resultOwnership": "none", "expression": "(async () => JSON.stringify(await (" + expression + ")))()"}, &e)
	if err != nil {
		return "", err
	}
	if e.Type == "exception" {
		text := e.Details.Text
		if e.Details.Exception.Type == "string" {
			text = e.Details.Exception.text() // a bare string was thrown
		}
		return "", t.OnFullDisk(&driver.Thrown{Text: fault.OneLine(text)})
	}
	return e.Result.text(), nil
}

// call sends a command whose answer comes from the page; it fails when that is lost.
func (t *Tab) call(ctx context.Context, method string, params, result any) error {
	both, cancel := engine.Within(t.Ctx, ctx)
	defer cancel()
	err := t.conn.call(both, method, params, result)
	if err == nil {
		return nil
	}
	gone := ""
	switch pid := t.Renderer(); {
	case errors.Is(err, errGone):
		gone = "the browser ended unexpectedly"
	case pid != 0 && !alive(pid):
		gone = "the page's content process ended"
	}
	return t.OnFullDisk(t.Meaning(ctx, err, gone))
}

// Turns waits for the event loop of the engine's thread to turn.
func (t *Tab) Turns(ctx context.Context) error {
	_, err := t.Evaluate(ctx, t.thread, "0")
	return err
}

// Answers waits for the browser's answer.
func (t *Tab) Answers(ctx context.Context) error {
	return t.call(ctx, "session.status", map[string]any{}, nil)
}

// Collect collects garbage in the engine's thread and the page's.
func (t *Tab) Collect(ctx context.Context) error {
	for _, thread := range []driver.Thread{driver.PageThread, t.thread} {
		if _, err := t.Evaluate(ctx, thread, "TestUtils.gc()"); err != nil {
			return fmt.Errorf("collecting the page's garbage: %w", err)
		}
	}
	return nil
}

// Inside returns nothing: Firefox tells nothing about the memory inside a page.
func (t *Tab) Inside(context.Context) ([]sample.Source, error) { return nil, nil }

// Workers lists none: their heaps cannot be read.
func (t *Tab) Workers(context.Context) ([]string, error) { return nil, nil }

// Heap returns nothing, like Inside.
func (t *Tab) Heap(string) sample.Source { return nil }

// Profile refuses: Firefox's profiles are not those that the reports describe.
func (t *Tab) Profile(context.Context, []engine.Profile) (func(context.Context, string) error, error) {
	return nil, fault.New(fault.NotSupported, "use Chrome", "Firefox makes no profiles for DevTools")
}

// Unreachable explains nothing: Firefox runs where we run.
func (t *Tab) Unreachable(err error, _ string) error { return err }
