package wire_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"llmparity/native/wire"
)

func TestEveryRequestHasAConnectionOfItsOwn(t *testing.T) {
	var connections atomic.Int64
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		_, _ = w.Write([]byte(r.Header.Get("Content-Type") + " " + string(body))) // the client may have gone
	}))
	srv.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			connections.Add(1)
		}
	}
	srv.Start()
	defer srv.Close()
	client := wire.NewClient(nil)
	for _, c := range []struct {
		body any
		want string
	}{{nil, " "}, {map[string]int{"n": 1}, `application/json {"n":1}`}} {
		req, err := wire.NewRequest(t.Context(), http.MethodPost, srv.URL, c.body)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || string(got) != c.want {
			t.Errorf("%q, %v; want %q", got, err, c.want)
		}
	}
	if n := connections.Load(); n != 2 {
		t.Errorf("%d connections for 2 requests", n)
	}
}

func TestRequestsThatCantBeMade(t *testing.T) {
	for _, c := range []struct {
		address string
		body    any
	}{{"http://x", func() {}}, {":", nil}} {
		if _, err := wire.NewRequest(t.Context(), http.MethodGet, c.address, c.body); err == nil {
			t.Errorf("%s: no error", c.address)
		}
	}
}
