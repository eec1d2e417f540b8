package chrome

import (
	"context"
	"errors"
	"fmt"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"llmparity/browser/driver"
	"llmparity/browser/find"
	"llmparity/internal/engine"
)

// Sheet is an empty page in its own browser, for scripts that draw. It has no network, uses the light colour scheme,
// and renders text in the same way on every screen; fonts are the machine's.
type Sheet struct{ tab *Tab }

// drawing are flags for a browser that only draws: no GPU, one colour space, no font hinting.
var drawing = []string{"disable-gpu", "force-color-profile=srgb", "font-render-hinting=none", "disable-lcd-text",
	"force-device-scale-factor=1",
	"host-resolver-rules=MAP * ~NOTFOUND"}

// OpenSheet starts a browser, chosen as by find.Chrome.
func OpenSheet(ctx context.Context, chrome string) (*Sheet, error) {
	path, err := find.Chrome(chrome)
	if err != nil {
		return nil, err
	}
	var s *Sheet
	err = engine.Repeat(ctx, engine.Unmeasured{}, "chrome", func() error {
		t, err := launch(ctx, path, driver.Options{Launch: driver.Launch{Flags: drawing}})
		if err != nil {
			return err
		}
		s = &Sheet{t}
		t.Listen(deaf{})
		light := []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "light"}}
		err = chromedp.Do(t.Ctx, command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: light}))
		if err != nil {
			return errors.Join(fmt.Errorf("preparing the page for drawing: %w", err), s.Close())
		}
		return nil
	})
	return s, err
}

// Run evaluates a script in the page and returns the text of its promise.
func (s *Sheet) Run(ctx context.Context, script string) (string, error) {
	both, cancel := engine.Within(s.tab.Ctx, ctx)
	defer cancel()
	text, err := chromedp.Run(both, chromedp.Evaluate[string](script, chromedp.EvalAwaitPromise))
	switch {
	case err == nil:
		return text, nil
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case context.Cause(s.tab.Ctx) != nil:
		return "", fmt.Errorf("drawing in the browser: %w", context.Cause(s.tab.Ctx))
	}
	return "", fmt.Errorf("drawing in the browser: %w", err)
}

// Close ends the browser and removes its profile.
func (s *Sheet) Close() error { return s.tab.Close() }

// deaf ignores a page's events. A crash makes the tab lost anyway.
type deaf struct{}

func (deaf) Reported(string)      {}
func (deaf) Threw(*driver.Thrown) {}
func (deaf) Said(string)          {}
