package browser

import (
	"context"
	"errors"
	"fmt"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/inspector"
	"github.com/chromedp/chromedp"

	"llmparity/browser/find"
	"llmparity/internal/engine"
)

// Sheet is an empty page in its own browser, for scripts that draw. It has no network, uses the light colour scheme,
// and renders text in the same way on every screen; fonts are the machine's.
type Sheet struct{ chrome *chrome }

// drawing are flags for a browser that only draws: no GPU, one colour space, no font hinting.
var drawing = []string{"disable-gpu", "force-color-profile=srgb", "font-render-hinting=none", "disable-lcd-text",
	"force-device-scale-factor=1",
	"host-resolver-rules=MAP * ~NOTFOUND"}

// OpenSheet starts a browser, chosen as in Config.Chrome.
func OpenSheet(ctx context.Context, chrome string) (*Sheet, error) {
	path, err := find.Chrome(chrome)
	if err != nil {
		return nil, err
	}
	var s *Sheet
	err = engine.Repeat(ctx, engine.Unmeasured{}, "chrome", func() error {
		c, err := launch(ctx, path, Config{Launch: Launch{Flags: drawing}})
		if err != nil {
			return err
		}
		s = &Sheet{c}
		c.listen(func(ev any) {
			if _, is := ev.(*inspector.EventTargetCrashed); is {
				c.lose(errors.New("the page for drawing crashed"))
			}
		})
		light := []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "light"}}
		err = chromedp.Do(c.ctx, command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: light}))
		if err != nil {
			return errors.Join(fmt.Errorf("preparing the page for drawing: %w", err), s.Close())
		}
		return nil
	})
	return s, err
}

// Run evaluates a script in the page and returns the text of its promise.
func (s *Sheet) Run(ctx context.Context, script string) (string, error) {
	both, cancel := engine.Within(s.chrome.ctx, ctx)
	defer cancel()
	text, err := chromedp.Run(both, chromedp.Evaluate[string](script, chromedp.EvalAwaitPromise))
	switch {
	case err == nil:
		return text, nil
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case context.Cause(s.chrome.ctx) != nil:
		return "", fmt.Errorf("drawing in the browser: %w", context.Cause(s.chrome.ctx))
	}
	return "", fmt.Errorf("drawing in the browser: %w", err)
}

// Close ends the browser and removes its profile.
func (s *Sheet) Close() error { return s.chrome.close() }
