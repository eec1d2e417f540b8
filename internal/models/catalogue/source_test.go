package catalogue

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestRedirectsStayOnHTTPS(t *testing.T) {
	for _, c := range []struct {
		from, to string
		followed bool
	}{
		{"https://example.com/a", "https://example.org/b", true},
		{"https://example.com/a", "http://example.com/b", false},
		{"https://example.com/a", "http://localhost:8080/b", false}, // a local server
		{"https://example.com/a", "http://127.0.0.1/b", false},
		{"http://localhost/a", "http://127.0.0.1:8080/b", true},
		{"http://[::1]/a", "https://example.com/b", true},
		{"http://localhost/a", "http://example.com/b", false},
		{"http://localhost/a", "ftp://localhost/b", false},
	} {
		via := []*http.Request{httptest.NewRequest(http.MethodGet, c.from, nil)}
		err := checkRedirect(httptest.NewRequest(http.MethodGet, c.to, nil), via)
		if (err == nil) != c.followed {
			t.Errorf("from %s to %s: %v", c.from, c.to, err)
		}
	}
}
