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

// NewClient makes a client that uses a new connection for each request: servers close idle ones at any time, and a
// request at that moment fails or is sent twice. A nil proxy means none.
func NewClient(proxy func(*http.Request) (*url.URL, error)) *http.Client {
	return &http.Client{Transport: &http.Transport{Proxy: proxy, DisableKeepAlives: true, DisableCompression: true}}
}

// NewRequest makes a request with a JSON body, or without one if body is nil.
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
