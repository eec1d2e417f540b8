// Package reportstest reads what renderers print, for tests.
package reportstest

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"encoding/json"
	"io"
	"regexp"
	"strconv"
	"testing"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	markdown "github.com/yuin/goldmark/renderer/html"
)

var packed = regexp.MustCompile(`<script type="text/plain" id="drawings" data-bytes="(\d+)">([^<]*)</script>`)

// Drawings is what the charts of a page are drawn from, which it holds packed with the labels that they shorten.
func Drawings(t testing.TB, page []byte) []byte {
	t.Helper()
	m := packed.FindSubmatch(page)
	if m == nil {
		t.Fatal("the page holds no drawings")
	}
	text, err := io.ReadAll(flate.NewReader(base64.NewDecoder(base64.StdEncoding, bytes.NewReader(m[2]))))
	if err != nil || strconv.Itoa(len(text)) != string(m[1]) {
		t.Fatalf("%d bytes of drawings, and the page says %s: %v", len(text), m[1], err)
	}
	var of struct{ Charts json.RawMessage }
	if err := json.Unmarshal(text, &of); err != nil {
		t.Fatal(err)
	}
	return of.Charts
}

// AsHTML renders Markdown as GitHub does, raw HTML let through.
func AsHTML(t testing.TB, text string) string {
	t.Helper()
	var b bytes.Buffer
	m := goldmark.New(goldmark.WithExtensions(extension.GFM, extension.Footnote),
		goldmark.WithRendererOptions(markdown.WithUnsafe()))
	if err := m.Convert([]byte(text), &b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
