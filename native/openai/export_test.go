package openai

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"llmparity/internal/engine"
)

// Impatient makes an engine wait for no longer with questions that should be answered at once.
func Impatient(e *Engine, patience time.Duration) { e.patience, e.waiting = patience, patience }

// CheckThrough is Check where the environment names a proxy. The environment itself is read once in a process's life.
func CheckThrough(ctx context.Context, e *Engine, proxy string, m engine.Model) error {
	at, err := url.Parse(proxy)
	if err != nil {
		return err
	}
	e.proxies = http.ProxyURL(at)
	return e.Check(ctx, m)
}

// Verified tells whether a session takes a model for the file that a server has read.
func Verified(local bool, file string, m engine.Model) bool {
	s := &session{client: &client{at: address{local: local}}, server: server{file: file}}
	return s.verified(m)
}
