package container

import (
	"context"
	"fmt"
	"net"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// Dial connects to an address in the container's own network, its loopback interface too: nothing has to listen
// outside. It needs the right to enter the network's namespace, as root has. A container that has no network of its own
// is dialled like any address.
func (c *Container) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	theirs, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", c.PID))
	if err != nil {
		return nil, fmt.Errorf("network of container %s: %w", c.Name, err)
	}
	defer theirs.Close()
	type answer struct {
		conn net.Conn
		err  error
	}
	done := make(chan answer, 1)
	go func() { // a thread of its own, which is in the other namespace until the socket is made
		runtime.LockOSThread()
		conn, err, home := dialIn(ctx, theirs, network, address)
		if home {
			runtime.UnlockOSThread()
		}
		done <- answer{conn, err}
		if !home {
			select {} // nobody else may get this thread; child forbids that it ends
		}
	}()
	a := <-done
	return a.conn, a.err
}

// dialIn connects from another namespace; home: the thread is back in its own.
func dialIn(ctx context.Context, theirs *os.File, network, address string) (conn net.Conn, err error, home bool) {
	ours, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return nil, err, true
	}
	defer ours.Close()
	if err := unix.Setns(int(theirs.Fd()), unix.CLONE_NEWNET); err != nil {
		return nil, fmt.Errorf("entering the container's network (as root it works): %w", err), true
	}
	// Of a numeric address, the socket is made on this thread.
	conn, err = (&net.Dialer{}).DialContext(ctx, network, address)
	return conn, err, unix.Setns(int(ours.Fd()), unix.CLONE_NEWNET) == nil
}
