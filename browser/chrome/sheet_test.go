package chrome

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"llmparity/internal/kit/check"
)

// A sheet runs scripts, in light mode, without network; it reports errors and can be cancelled.
func TestSheet(t *testing.T) {
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer server.Close()
	s, err := OpenSheet(t.Context(), "")
	check.Err(t, err)
	defer func() {
		check.Also(t, s.Close())
	}()
	if got, err := s.Run(t.Context(), `(async () => matchMedia("(prefers-color-scheme: light)").matches + " " + devicePixelRatio)()`); err != nil || got != "true 1" {
		t.Errorf("%q, %v", got, err)
	}
	port := server.URL[strings.LastIndexByte(server.URL, ':'):]
	for _, address := range []string{"http://localhost" + port, server.URL} {
		script := fmt.Sprintf(`new Promise((done) => { const i = new Image(); i.onload = i.onerror = (e) => done(e.type); i.src = %q; })`, address+"/x.png")
		if got, err := s.Run(t.Context(), script); err != nil || got != "error" || asked.Load() > 0 {
			t.Errorf("%s: %q, %v, asked %d times", address, got, err, asked.Load())
		}
	}
	if _, err := s.Run(t.Context(), `Promise.reject(new Error("no ink"))`); err == nil ||
		!strings.Contains(err.Error(), "no ink") {
		t.Errorf("failing script: %v", err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Run(over, `new Promise(() => {})`); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled call: %v", err)
	}
}
