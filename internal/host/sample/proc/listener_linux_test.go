package proc_test

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"llmparity/internal/host/sample/proc"
	"llmparity/internal/host/sample/proc/proctest"
	"llmparity/internal/kit/check"
)

// asListener makes the test binary listen at an address and say where, until its standard input ends; with inChild it
// has a child do so.
const (
	asListener = "PROC_TEST_LISTENER"
	inChild    = "PROC_TEST_IN_CHILD"
)

func listenAsChild() {
	if os.Getenv(inChild) != "" {
		os.Unsetenv(inChild)
		child := exec.Command(os.Args[0], os.Args[1:]...)
		child.Stdin, child.Stdout, child.Stderr = os.Stdin, os.Stdout, os.Stderr
		if err := child.Run(); err != nil {
			fmt.Println(err)
		}
		return
	}
	l, err := net.Listen("tcp", os.Getenv(asListener))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(l.Addr(), os.Getpid())
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(io.Discard, c); c.Close() }()
		}
	}()
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// listener starts a command that listens, and gives where and which process does.
func listener(t *testing.T, cmd *exec.Cmd, address string, env ...string) (at string, pid int) {
	t.Helper()
	cmd.Env = append(append(os.Environ(), asListener+"="+address), env...)
	in, out := proctest.Start(t, cmd)
	t.Cleanup(func() {
		in.Close()
		check.Also(t, cmd.Wait())
	})
	out.Scan()
	if n, err := fmt.Sscan(out.Text(), &at, &pid); n != 2 {
		t.Fatalf("%q: %v", out.Text(), err)
	}
	return at, pid
}

func self(t *testing.T) *exec.Cmd {
	t.Helper()
	return exec.Command(os.Args[0])
}

// Two programs may listen on the same port of two addresses.
func TestListenerByAddress(t *testing.T) {
	four, first := listener(t, self(t), "127.0.0.1:0")
	_, port, _ := net.SplitHostPort(four)
	six, second := listener(t, self(t), "[::1]:"+port)
	for at, want := range map[string]int{four: first, six: second} {
		if pid, err := proc.PIDOfListener(t.Context(), at); err != nil || pid != want {
			t.Errorf("%s: process %d, %v; want %d", at, pid, err, want)
		}
	}
	// Who listens at every address does not answer where another one listens at that very one.
	all, third := listener(t, self(t), "0.0.0.0:0")
	_, port, _ = net.SplitHostPort(all)
	for _, host := range []string{"127.0.0.1", "0.0.0.0", "localhost"} {
		if pid, err := proc.PIDOfListener(t.Context(), net.JoinHostPort(host, port)); err != nil || pid != third {
			t.Errorf("%s: process %d, %v; want %d", host, pid, err, third)
		}
	}
}

// A busy server does not accept connections. A worker that shares the socket was started later.
func TestListenerWithoutAccept(t *testing.T) {
	for _, address := range []string{"127.0.0.1:0", "[::1]:0"} {
		l, err := net.Listen("tcp", address)
		check.Err(t, err)
		at := l.Addr().String()
		file, err := l.(*net.TCPListener).File()
		check.Err(t, err)
		worker := exec.Command("sleep", "605") // holds the socket too
		worker.ExtraFiles = []*os.File{file}
		check.Err(t, worker.Start())
		if pid, err := proc.PIDOfListener(t.Context(), at); err != nil || pid != os.Getpid() {
			t.Errorf("%s: process %d, %v; want %d", address, pid, err, os.Getpid())
		}
		_ = file.Close()
		_ = worker.Process.Kill()
		_ = worker.Wait() // killed, as it should be
		check.Err(t, l.Close())
		if pid, err := proc.PIDOfListener(t.Context(), at); err == nil {
			t.Errorf("%s: closed, but process %d listens", address, pid)
		}
	}
}

// The root of a server is its topmost process: the same program or a known launcher, and neither a shell nor this
// process.
func TestRootOfServer(t *testing.T) {
	launcher := filepath.Join(t.TempDir(), "text-generation-launcher")
	check.Err(t, os.WriteFile(launcher, []byte("#!/bin/sh\n\"$@\"\n"), 0o755))
	own := self(t)
	_, pid := listener(t, own, "127.0.0.1:0")
	if root := proc.Root(pid); root != pid {
		t.Errorf("a server of its own: %d, want %d", root, pid)
	}
	nested := self(t)
	if _, pid := listener(t, nested, "127.0.0.1:0", inChild+"=1"); proc.Root(pid) != nested.Process.Pid ||
		pid == nested.Process.Pid {
		t.Errorf("a child of the same program: %d, want its parent %d", proc.Root(pid), nested.Process.Pid)
	}
	shell := exec.Command("sh", "-c", `"$0"; true`, os.Args[0])
	if _, pid := listener(t, shell, "127.0.0.1:0"); proc.Root(pid) != pid {
		t.Errorf("a shell's child: %d, want itself, %d", proc.Root(pid), pid)
	}
	known := exec.Command(launcher, os.Args[0])
	if _, pid := listener(t, known, "127.0.0.1:0"); proc.Root(pid) != known.Process.Pid || pid == known.Process.Pid {
		t.Errorf("a known launcher's child: %d (%s), want its parent %d", proc.Root(pid),
			strings.Join(proc.CommandLine(proc.Root(pid)), " "), known.Process.Pid)
	}
}
