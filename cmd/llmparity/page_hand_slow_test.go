//go:build slow

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"llmparity/browser/driver"
	"llmparity/browser/find"
	"llmparity/browser/firefox"
	"llmparity/internal/models/gguf"
	"llmparity/internal/models/tiny"
)

func (h hand) presses(key string) {
	h.Helper()
	check(h, chromedp.Do(h.ctx, chromedp.KeyEvent(key)))
}

func (h hand) focused() string {
	h.Helper()
	return sees[string](h, "document.activeElement.id || document.activeElement.textContent.trim()")
}

// All of the page works by keyboard, in the order in which it is read.
func TestPageByKeyboard(t *testing.T) {
	browserTest(t)
	_, address := pageServed(t)
	h := newHand(t)
	h.opens(address)
	var order []string
	for range 11 {
		h.presses(kb.Tab)
		order = append(order, h.focused())
		if order[len(order)-1] == "start" {
			break
		}
		if width := sees[string](h, "getComputedStyle(document.activeElement).outlineStyle"); width == "none" {
			t.Errorf("focus on %s is not shown", order[len(order)-1])
		}
	}
	want := []string{"Skip to the form", "engine", "model", "maxTokens", "context", "launches", "thread",
		"prompt", "file", "start"}
	if !slices.Equal(order, want) {
		t.Fatalf("Tab leads to %q, want %q", order, want)
	}
	h.types("#maxTokens", "400")
	h.types("#launches", "1")
	h.presses(kb.Enter) // in a field
	h.reads("#phase", "generate")
	h.presses(kb.Escape)
	h.reads("#status", "Stopped")
	h.waits()
	sees[bool](h, "document.getElementById('start').focus(), true")
	h.presses(kb.Enter)
	h.reads("#phase", "generate")
	if at := h.focused(); at != "stop" {
		t.Errorf("while it measures, the focus is on %s", at)
	}
	h.presses(kb.Enter)
	h.reads("#status", "Stopped")
	h.waits()
	if at := h.focused(); at != "start" {
		t.Errorf("after Stop, the focus is on %s", at)
	}
	h.short()
	h.presses(kb.Enter)
	h.reads("#status", "Done.")
	for range 30 {
		h.presses(kb.Tab)
		if h.focused() == "Save as a run" {
			break
		}
	}
	h.presses(kb.Enter)
	h.reads("#status", "is saved in")
}

// What a model says of itself stays text, on the page and in the report.
func TestPageHostileModel(t *testing.T) {
	browserTest(t)
	const hostile = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"
	_, address := pageServed(t)
	h := newHand(t)
	h.opens(address)
	path := filepath.Join(shortDir(t), "hostile.gguf")
	rewrite(t, tinyOf(t).Path, path, gguf.Entry{Key: "general.name", Value: hostile})
	check(t, chromedp.Do(h.ctx, chromedp.SetUploadFiles("#file", []string{path})))
	h.reads("#status", "hostile.gguf is ready.")
	h.short()
	h.types("#prompt", hostile)
	h.clicks("#start")
	h.reads("#status", "Done.")
	mentions(t, h.text("#runs"), "<img src=x", "</script>")
	markup := "document.querySelectorAll('main img, main script').length"
	if sees[string](h, "document.title") == "owned" || sees[int](h, markup) != 0 {
		t.Error("the model's name has become markup")
	}
	report := sees[string](h, "fetch(document.querySelectorAll('#runs a')[2].href).then((r) => r.text())")
	mentions(t, report, "&lt;img src=x")
	if strings.Contains(report, "<img src=x") {
		t.Error("the report has the model's markup")
	}
}

// A model that is larger than memory is refused before it is read.
func TestPageRefusesLargeModels(t *testing.T) {
	browserTest(t)
	large := filepath.Join(shortDir(t), "large.gguf")
	check(t, sparse(large, 1<<40, tiny.Spec{Layers: 32, Hidden: 4096, FFN: 14336, Heads: 32, Vocab: 32000}))
	_, address := pageServed(t, "--model", large)
	h := newHand(t)
	h.opens(address)
	h.short()
	h.chooses("#model", large)
	h.clicks("#start")
	h.waits()
	said := h.text("#status")
	if !strings.HasPrefix(said, "large.gguf has 1024.00 GiB, and ") || strings.Contains(said, "\n") {
		t.Errorf("a model larger than memory: %q", said)
	}
}

// sparse writes the beginning of a model. The rest is a hole, which takes no room on the disk.
func sparse(path string, size int64, of tiny.Spec) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := tiny.WriteRandom(&beginning{f, 8 << 20}, of); !errors.Is(err, io.ErrShortWrite) {
		return errors.Join(fmt.Errorf("it is not cut short: %w", err), f.Close())
	}
	return errors.Join(f.Truncate(size), f.Close())
}

// beginning takes so many bytes and no more.
type beginning struct {
	io.Writer
	left int
}

func (b *beginning) Write(p []byte) (int, error) {
	if b.left -= len(p); b.left < 0 {
		return 0, io.ErrShortWrite
	}
	return b.Writer.Write(p)
}

// Three browsers run one plan, each once, and the report compares them. One that is closed in mid-run, one that comes
// twice, and one whose clock is off get a line each, and the others' results stay.
func TestPageCollects(t *testing.T) {
	browserTest(t)
	const plan = "name: devices\nengines: [wllama]\nwllama: {backend: wasm}\nmodel: tiny\nprompts: [the quick]\nmax_tokens: 200\nrepetitions: 2\n"
	path := filepath.Join(shortDir(t), "plan.yaml")
	check(t, os.WriteFile(path, []byte(plan), 0o600))
	cmd, address := pageServed(t, path, "--collect", "3", "--for", "8m")
	leaves := newHand(t)
	check(t, chromedp.Do(leaves.ctx, chromedp.Navigate(address)))
	leaves.reads("#phase", "generate")
	first := newHand(t)
	check(t, chromedp.Do(first.ctx, chromedp.Navigate(address)))
	first.reads("#notes", "Another page on this device is measuring")
	check(t, chromedp.Do(leaves.ctx, chromedp.Navigate("about:blank"))) // it is closed
	first.reads("#status", "Done.")
	again, _ := chromedp.NewContext(first.ctx) // another tab of the same browser
	defer func() { _ = chromedp.Cancel(again) }()
	twice := hand{t, again}
	check(t, chromedp.Do(again, chromedp.Navigate(address)))
	twice.reads("#status", "this browser has run the plan already")

	late := newHand(t)
	slow := page.AddScriptToEvaluateOnNewDocumentParams{
		Source: "{ const { now } = Date; Date.now = () => now() - 3 * 3600_000; }"}
	_, err := chromedp.Call(late.ctx, page.AddScriptToEvaluateOnNewDocument, slow)
	check(t, err)
	check(t, chromedp.Do(late.ctx, chromedp.Navigate(address)))
	late.reads("#notes", "This device's clock differs from llmparity's by 3h0m")
	late.reads("#status", "Done.")

	path, err = find.Chrome("firefox")
	check(t, err)
	tab, err := firefox.Launch(t.Context(), path, driver.Options{})
	check(t, err)
	defer func() { check(t, tab.Close()) }()
	check(t, tab.Open(t.Context(), address, address))
	check(t, cmd.Wait())
	said := fmt.Sprint(cmd.Stdout)
	t.Log(said)
	mentions(t, said, "Chrome/", "the page was closed or loaded again", "1 of 3: Chrome/", "3 of 3: Firefox/",
		"collected.html")
	dirs, err := filepath.Glob(filepath.Join(cmd.Dir, "results", "*", "run.json"))
	check(t, err)
	if len(dirs) != 3 {
		t.Errorf("%d runs are saved", len(dirs))
	}
	mentions(t, readFile(t, filepath.Join(cmd.Dir, "results", "collected.html")), "Firefox/", "Chrome/")
}
