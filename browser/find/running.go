package find

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"llmparity/internal/kit/fault"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Address parses the address of a running browser: HOST:PORT, http://HOST:PORT or
// ws://HOST:PORT/devtools/browser/ID.
func Address(text string) (*url.URL, error) {
	whole := text
	if !strings.Contains(text, "://") {
		whole = "http://" + text
	}
	u, err := url.Parse(whole)
	if err != nil || u.Hostname() == "" || u.Port() == "" || !slices.Contains([]string{"http", "ws"}, u.Scheme) {
		return nil, fault.New(fault.Usage,
			"use HOST:PORT or ws://HOST:PORT/devtools/browser/ID of a browser started with --remote-debugging-port",
			"--attach %q is not the address of a browser", text)
	}
	return u, nil
}

// Endpoint returns the browser's WebSocket and its IP address; browsers refuse connections by host name.
func Endpoint(ctx context.Context, address string, limit time.Duration) (string, *net.TCPAddr, error) {
	u, err := Address(address)
	if err != nil {
		return "", nil, err
	}
	unreachable := func(err error) error {
		return fault.Wrap(fault.NoChrome, err, "start one with --remote-debugging-port="+u.Port()+
			" and its own --user-data-dir", "no browser answers at %s", address)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var dialer net.Dialer
	line, err := dialer.DialContext(ctx, "tcp", u.Host) // picks the address that accepts connections
	if err != nil {
		return "", nil, unreachable(err)
	}
	at := line.RemoteAddr().(*net.TCPAddr)
	_ = line.Close() // nothing was sent
	u.Host = at.String()
	if strings.HasPrefix(u.Path, "/devtools/browser/") {
		u.Scheme = "ws"
		return u.String(), at, nil
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}} // no proxy
	u.Scheme, u.Path = "http", "/json/version"
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return "", nil, unreachable(err)
	}
	answer, err := client.Do(request)
	if err != nil {
		return "", nil, unreachable(err)
	}
	defer answer.Body.Close()
	var v struct {
		Socket string `json:"webSocketDebuggerUrl"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(nil, answer.Body, 1<<20)).Decode(&v); err != nil {
		return "", nil, unreachable(fmt.Errorf("it is not a browser (%s): %w", answer.Status, err))
	}
	socket, err := url.Parse(v.Socket)
	if err != nil || socket.Path == "" {
		return "", nil, unreachable(errors.New("it does not report a WebSocket address"))
	}
	// Keep our port: a forwarded one has another number at its other end.
	socket.Scheme, socket.Host = "ws", u.Host
	return socket.String(), at, nil
}
