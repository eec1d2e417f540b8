package child

import (
	"errors"
	"fmt"
	"net"
)

// ErrPortTaken is a free port that was somebody else's before the server that it was for could have it.
var ErrPortTaken = errors.New("the port was taken by another process")

// FreePort gives a port of the loopback interface that was free a moment ago.
func FreePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("looking for a free port: %w", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// OnFreePort starts a server on a port that pick gives, and on another one where that was taken meanwhile, as start
// then says by ErrPortTaken. It does not try for ever.
func OnFreePort(pick func() (int, error), start func(port int) error) error {
	const tries = 5
	for try := 1; ; try++ {
		port, err := pick()
		if err != nil {
			return err
		}
		if err = start(port); !errors.Is(err, ErrPortTaken) {
			return err
		}
		if try == tries {
			return fmt.Errorf("%d free ports one after the other: %w", tries, err)
		}
	}
}
