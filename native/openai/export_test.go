package openai

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"llmparity/internal/engine"
)

// Impatient limits how long an engine waits.
func Impatient(e *Engine, patience time.Duration) { e.patience, e.waiting = patience, patience }

// CheckThrough is Check through a proxy, as if the environment named it; net/http reads the environment only once.
func CheckThrough(ctx context.Context, e *Engine, proxy string, m engine.Model) error {
	at, err := url.Parse(proxy)
	if err != nil {
		return err
	}
	e.proxies = http.ProxyURL(at)
	return e.Check(ctx, m)
}

// Verified calls verified on a session.
func Verified(local bool, file string, m engine.Model) bool {
	s := &session{client: &client{at: address{local: local}}, server: server{file: file}}
	return s.verified(m)
}
