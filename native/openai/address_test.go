package openai

import (
	"net/http"
	"testing"
	"time"
)

func TestAddresses(t *testing.T) {
	for raw, want := range map[string]address{
		"http://127.0.0.1:8080":     {"http://127.0.0.1:8080", "http://127.0.0.1:8080/v1", "127.0.0.1:8080", true},
		"http://localhost:8000/v1/": {"http://localhost:8000", "http://localhost:8000/v1", "localhost:8000", true},
		// a URL copied from a manual
		"http://[::1]:2/v1/chat/completions": {"http://[::1]:2", "http://[::1]:2/v1", "[::1]:2", true},
		"http://[::1]:1/v1":                  {"http://[::1]:1", "http://[::1]:1/v1", "[::1]:1", true},
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

// Impatient limits how long questions may take, until the test ends.
func Impatient(t *testing.T, patience time.Duration) {
	before := askPatience
	askPatience = patience
	t.Cleanup(func() { askPatience = before })
}
