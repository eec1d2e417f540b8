package chrome

import (
	"context"
	"fmt"

	"github.com/chromedp/cdproto/storage"
	"github.com/chromedp/chromedp"

	"llmparity/browser/driver"
	"llmparity/browser/store"
)

// stores are where Chrome keeps what pages store: Cache API, IndexedDB, file systems, and who has which of them.
var stores = store.Folders{"Default/Service Worker", "Default/IndexedDB", "Default/File System", "Default/WebStorage"}

// Quit ends the browser as its user does.
func (t *Tab) Quit(ctx context.Context) error {
	within, cancel := t.within(ctx)
	defer cancel()
	limited, cancel := context.WithTimeout(within, driver.Quits)
	defer cancel()
	if err := chromedp.Cancel(limited); err != nil {
		return fmt.Errorf("quitting the browser: %w", err)
	}
	if limited.Err() == context.DeadlineExceeded {
		return fmt.Errorf("the browser did not quit within %g s", driver.Quits.Seconds())
	}
	return t.Ends(ctx)
}

// Limit makes the browser grant an origin so many bytes and no more, until it ends.
func (t *Tab) Limit(ctx context.Context, origin string, bytes int64) error {
	_, err := ask(ctx, t, "limiting the page's storage", storage.OverrideQuotaForOrigin,
		storage.OverrideQuotaForOriginParams{Origin: origin, QuotaSize: new(float64(bytes))})
	return err
}
