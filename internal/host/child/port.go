package child

import (
	"errors"
	"fmt"
	"net"
)

// ErrPortTaken means that another process took a free port before the server did.
var ErrPortTaken = errors.New("the port was taken by another process")

// FreePort returns a port of the loopback interface that was free a moment ago.
func FreePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("finding a free port: %w", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// OnFreePort starts a server on a free port, and tries again a few times if start returns ErrPortTaken.
func OnFreePort(start func(port int) error) error {
	const tries = 5
	for try := 1; ; try++ {
		port, err := FreePort()
		if err != nil {
			return err
		}
		if err = start(port); !errors.Is(err, ErrPortTaken) {
			return err
		}
		if try == tries {
			return fmt.Errorf("%d free ports in a row: %w", tries, err)
		}
	}
}
