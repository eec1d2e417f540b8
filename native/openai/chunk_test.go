package openai

import (
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"llmparity/internal/record"
	"llmparity/native/launch"
	"llmparity/native/wire"
)

func FuzzChunk(f *testing.F) {
	for _, seed := range []string{
		`{"choices":[{"index":0,"text":"a","finish_reason":null}],"usage":null}`,
		`{"choices":[{"index":0,"delta":{"role":"assistant","content":null},"finish_reason":"stop"}],"timings":{"predicted_n":4,"cache":null}}`,
		`{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5,"prompt_tokens_details":{"cached_tokens":1}}}`,
		`{"error":{"message":"sk-very-secret\nis wrong","type":"x","code":"y"}}`, `{"error":"text"}`,
		`{"object":"error","message":"m","code":40}`,
		`{"detail":[{"loc":["body"],"msg":"extra"}]}`, `{"error":{"error":{"error":{}}}}`, `{"error":[1]}`,
		"<html>\n</html>",
	} {
		f.Add([]byte(seed))
	}
	c := &client{Client: wire.Client{Key: "sk-very-secret"}}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, err := range []error{second(c.parseChunk(data)), c.Complaint(data)} {
			if err == nil {
				continue
			}
			if text := err.Error(); strings.Contains(text, "\n") || strings.Contains(text, c.Key) ||
				!utf8.ValidString(text) {
				t.Errorf("%q", text)
			}
		}
		e, err := c.parseChunk(data)
		if err != nil {
			return
		}
		// Whatever a chunk says, no more tokens are reported than were requested, except one for each piece of text.
		var reported []record.Token
		g := &generation{client: c, body: &body{}, most: 4,
			Text: launch.Text{Token: func(k record.Token) { reported = append(reported, k) }}}
		for n := range 3 {
			if err := g.take(e, time.Unix(int64(n), 0)); err != nil {
				return
			}
		}
		g.measured()
		if len(reported) != g.N || g.N > max(g.most, g.pieces) || g.N < g.pieces ||
			g.usage.Generated > g.most || g.pieces > 0 != (g.usage.Text != "") {
			t.Errorf("%q: %d tokens reported, %d counted, %d pieces, %d by the server: %q", data, len(reported),
				g.N,
				g.pieces, g.usage.Generated, g.usage.Text)
		}
		for i, k := range reported {
			if k.Index != i {
				t.Errorf("%q: token %d has index %d", data, i, k.Index)
			}
		}
	})
}

func second(_ chunk, err error) error { return err }

func TestAddresses(t *testing.T) {
	for raw, want := range map[string]address{
		"http://127.0.0.1:8080":     {"http://127.0.0.1:8080", "http://127.0.0.1:8080/v1", "127.0.0.1:8080", true},
		"http://localhost:8000/v1/": {"http://localhost:8000", "http://localhost:8000/v1", "localhost:8000", true},
		"http://[::1]:1/v1":         {"http://[::1]:1", "http://[::1]:1/v1", "[::1]:1", true},
		"https://api.example.com": {"https://api.example.com", "https://api.example.com/v1",
			"api.example.com:443", false},
		"https://example.com/openai/v1": {"https://example.com/openai", "https://example.com/openai/v1",
			"example.com:443", false},
		"http://10.0.0.1/v1beta/openai": {"http://10.0.0.1/v1beta/openai", "http://10.0.0.1/v1beta/openai",
			"10.0.0.1:80", false},
		"http://127.0.0.1.example.com:1/x": {"http://127.0.0.1.example.com:1/x", "http://127.0.0.1.example.com:1/x",
			"127.0.0.1.example.com:1", false},
	} {
		if got, err := parseAddress(raw); err != nil || got != want {
			t.Errorf("%s: %+v, %v; want %+v", raw, got, err, want)
		}
		// A proxy for a server on this machine would be measured, too.
		if direct := newClient(want, "", "").HTTP.Transport.(*http.Transport).Proxy == nil; direct != want.local {
			t.Errorf("%s: contacted without a proxy: %v", raw, direct)
		}
	}
	for _, raw := range []string{"", "127.0.0.1:8080", "localhost:80", "http://127.0.0.1:0",
		"ftp://x", "http://x y", "http://u@x", "http://x#y"} {
		if a, err := parseAddress(raw); err == nil {
			t.Errorf("%q is parsed as %+v", raw, a)
		}
	}
}
