package chrome

import (
	"context"
	"fmt"

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
