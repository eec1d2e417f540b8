package main

import (
	"context"
	"net/url"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"llmparity/compare/comparetest"
	"llmparity/reports/reportstest"
)

// noticeFirstChart scrolls to the first chart and records when it was drawn, in milliseconds after the navigation.
const noticeFirstChart = `(() => {
	const seen = new MutationObserver(() => {
		const place = document.querySelector("[data-chart]");
		if (!place) return;
		if (!window.went) { window.went = true; place.scrollIntoView(); }
		if (!document.querySelector("[data-chart] .plot svg path")) return;
		seen.disconnect();
		requestAnimationFrame(() => setTimeout(() => { window.firstChart = performance.now(); })); // painted
	});
	seen.observe(document, { childList: true, subtree: true });
})()`

// BenchmarkFirstChart measures the time from navigation to the first chart in a report of a million samples.
func BenchmarkFirstChart(b *testing.B) {
	dir := comparetest.Long(b, b.TempDir(), 1_000_000, 100_000)
	path := filepath.Join(b.TempDir(), "report.html")
	good(b, "report", dir, "-o", path)
	ctx := reportstest.Browser(b)
	var times []float64
	for b.Loop() {
		times = append(times, firstChart(b, ctx, "file://"+(&url.URL{Path: path}).EscapedPath()))
	}
	slices.Sort(times)
	b.ReportMetric(times[len(times)/2]/1000, "s")
	b.ReportMetric(times[len(times)-1]/1000, "worst-s")
	b.ReportMetric(0, "ns/op") // with what the tab takes
}

func firstChart(b *testing.B, ctx context.Context, address string) float64 {
	b.Helper()
	tab, cancel := chromedp.NewContext(ctx)
	defer cancel()
	notice := func(ctx context.Context, t *chromedp.Target) (chromedp.Void, error) {
		var none chromedp.Void
		_, err := cdp.Call(ctx, t, page.AddScriptToEvaluateOnNewDocument,
			page.AddScriptToEvaluateOnNewDocumentParams{Source: noticeFirstChart})
		return none, err
	}
	check(b, chromedp.Do(tab, chromedp.EmulateViewport(1280, 800), notice, chromedp.Navigate(address)))
	ms, err := chromedp.Run(tab, chromedp.Evaluate[float64](`(async () => {
		while (!window.firstChart) await new Promise((later) => setTimeout(later, 20));
		return window.firstChart;
	})()`, chromedp.EvalAwaitPromise))
	check(b, err)
	return ms
}
