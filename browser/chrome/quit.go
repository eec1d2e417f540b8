package chrome

import (
	"context"
	"fmt"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/chromedp"

	"llmparity/browser/store"
)

// stores are where Chrome keeps what pages store: Cache API, IndexedDB, file systems, and who has which of them.
var stores = store.Folders{"Default/Service Worker", "Default/IndexedDB", "Default/File System", "Default/WebStorage"}

// Quit ends the browser as its user does.
func (t *Tab) Quit(ctx context.Context) error {
	within, cancel := t.within(ctx)
	defer cancel()
	if _, err := chromedp.CallBrowser(within, browser.Close, cdp.Empty{}); err != nil && t.Lost() == nil {
		return fmt.Errorf("quitting the browser: %w", err)
	}
	return t.Ends(ctx)
}
