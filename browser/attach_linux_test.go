package browser

import (
	"net"
	"os"
	"slices"
	"strconv"
	"testing"
)

func TestListenersAreFoundByTheirPort(t *testing.T) {
	for _, address := range []string{"127.0.0.1:0", "[::1]:0", ":0"} {
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		a := l.Addr().(*net.TCPAddr)
		ip := a.IP
		if ip.IsUnspecified() {
			ip = net.IPv4(127, 0, 0, 1)
		}
		if got := listeners(ip, strconv.Itoa(a.Port)); !slices.Equal(got, []int{os.Getpid()}) {
			t.Errorf("%s: %v listen, want %d", a, got, os.Getpid())
		}
		if got := listeners(net.IPv4(192, 0, 2, 1), strconv.Itoa(a.Port)); got != nil {
			t.Errorf("%v listen on another machine", got)
		}
	}
}

func FuzzListening(f *testing.F) {
	f.Add("  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n" +
		"   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4242 1 0 100 0 0 10 0\n")
	f.Add("   1: 00000000000000000000000001000000:1F90 00000000000000000000000000000000:0000 0A 0:0 0:0 0 0 0 4343\n")
	f.Add("x: y 0 0A\n")
	f.Fuzz(func(t *testing.T, table string) {
		for _, inode := range listening(table, net.IPv4(127, 0, 0, 1), 8080) {
			if inode == "" {
				t.Error("an inode without a name")
			}
		}
	})
}
