package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

// NewClient makes one of whose requests each has a connection of its own: a server closes idle ones when it likes, and
// a request that meets one just then fails or is sent twice. proxy is nil where there is to be none between us and the
// server.
func NewClient(proxy func(*http.Request) (*url.URL, error)) *http.Client {
	return &http.Client{Transport: &http.Transport{Proxy: proxy, DisableKeepAlives: true, DisableCompression: true}}
}

// NewRequest makes a request with a body of JSON; nil: without one.
func NewRequest(ctx context.Context, method, address string, body any) (*http.Request, error) {
	var r io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("making a request to %s: %w", address, err)
		}
		r = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, address, r)
	if err != nil {
		return nil, fmt.Errorf("making a request to %s: %w", address, err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	return req, nil
}
