package chrome

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/inspector"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"

	"llmparity/browser/driver"
)

// overhear returns a listener for the tab's events. It notices a crash, after which calls to the tab wait for ever.
func (t *Tab) overhear() func(any) {
	t.crashed = make(chan struct{})
	crash := sync.OnceFunc(func() { close(t.crashed) })
	return func(ev any) {
		if _, is := ev.(*inspector.EventTargetCrashed); is {
			crash()
		}
		if told := t.told.Load(); told != nil {
			t.hear(*told, ev)
		}
	}
}

// Listen sets who hears of the page's events. It also gets an earlier crash.
func (t *Tab) Listen(l driver.Listener) {
	t.told.Store(&l)
	select {
	case <-t.crashed:
		t.hear(l, &inspector.EventTargetCrashed{})
	default:
	}
}

// hear handles the tab's events on the goroutine that reads them.
func (t *Tab) hear(l driver.Listener, ev any) {
	switch ev := ev.(type) {
	case *runtime.EventBindingCalled:
		if ev.Name == driver.Binding {
			l.Reported(ev.Payload)
		}
	case *runtime.EventExceptionThrown:
		l.Threw(thrown(&chromedp.ExceptionError{ExceptionDetails: ev.ExceptionDetails}))
	case *runtime.EventConsoleAPICalled:
		var text string
		isError := ev.Type == runtime.ConsoleAPICalledTypeError && len(ev.Args) > 0
		if isError && json.Unmarshal(ev.Args[0].Value, &text) == nil {
			l.Said(text)
		}
	case *target.EventTargetCrashed: // of any target of the browser
		if ev.TargetID == t.ID {
			t.crash(ev.Status, 0)
		}
	case *inspector.EventTargetCrashed:
		t.crash("crashed", wordsCome)
	}
}

// stages waits until the browser answers, then its first tab.
func (t *Tab) stages(ctx context.Context, first context.Context, l driver.Limits) error {
	err := t.Stage(ctx, l.Answer, "Chrome", t.crashed, func() error { return t.ask(first) })
	if err != nil {
		return err
	}
	t.About.PID = chromedp.FromContext(first).Browser.Process().Pid
	return t.Stage(ctx, l.Tab, "Chrome's first tab", t.crashed, func() error { return chromedp.Do(first) })
}

// ask asks the browser for its version.
func (t *Tab) ask(ctx context.Context) error {
	v, err := chromedp.CallBrowser(ctx, browser.GetVersion, cdp.Empty{})
	t.About.Product = v.Product
	t.About.Parts = map[string]string{"user_agent": v.UserAgent, "javascript": v.JsVersion}
	return err
}

// Failed ends a browser that did not become ready, with a report about it.
func (t *Tab) Failed(path string, err error) error {
	err = t.Failure(path, err)
	closing := t.Close() // chromedp may start the program until then
	if t.cmd == nil || t.cmd.Process == nil {
		err = driver.NotExecuted(path, err)
	}
	if closing != nil {
		return fmt.Errorf("%w (and closing the browser: %v)", err, closing)
	}
	return err
}
