package reportstest

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"llmparity/browser/find"
	"llmparity/internal/host/child"
	"llmparity/internal/kit/check"
)

// Browser starts a browser for pages.
func Browser(t testing.TB) context.Context {
	t.Helper()
	path, err := find.Chrome("")
	check.Err(t, err)
	// short, as sockets' names are; with the browser's own temporary files, which one that is killed leaves
	home, err := os.MkdirTemp("", "llmparity-home")
	check.Err(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path),
		chromedp.UserDataDir(t.TempDir()), chromedp.Flag("headless", "new"),
		chromedp.Env("HOME="+home, "TMPDIR="+home), chromedp.ModifyCmdFunc(child.Own))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute) // a watchdog
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(cancel)
	ctx, _ = chromedp.NewContext(ctx)
	t.Cleanup(func() { _ = chromedp.Cancel(ctx) })
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("starting %s: %v", path, err)
	}
	return ctx
}
