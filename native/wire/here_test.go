package wire_test

import (
	"net"
	"testing"

	"llmparity/native/wire"
)

func TestIsHere(t *testing.T) {
	hosts := map[string]bool{"localhost": true, "a.localhost": true, "127.0.0.2": true, "::1": true,
		"::ffff:127.0.0.1": true, "0.0.0.0": true,
		"192.0.2.1": false, "example.org": false, "127.0.0.1.example.org": false, "": false}
	own, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range own {
		if n, ok := a.(*net.IPNet); ok {
			hosts[n.IP.String()] = true
		}
	}
	for host, want := range hosts {
		if got := wire.IsHere(host); got != want {
			t.Errorf("%q: %v, want %v", host, got, want)
		}
	}
}
