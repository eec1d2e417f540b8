//go:build slow && linux

package container_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"llmparity/internal/host/container"
	"llmparity/internal/host/container/containertest"
	"llmparity/internal/host/sample/proc"
	"llmparity/internal/kit/check"
)

func found(t *testing.T, name string) *container.Container {
	t.Helper()
	c, err := container.Find(t.Context(), name)
	check.Err(t, err)
	return c
}

// A command in a container gets its arguments and variables as they are, and gives its output and exit code.
func TestExec(t *testing.T) {
	containertest.Setup(t)
	containertest.Run(t, "box", "while :; do busybox sleep 1; done", "-e", "PATH=/bin")
	c := found(t, "box")
	cmd := c.Exec([]string{"busybox", "sh", "-c", `echo "$1 $WORDS"; exit 7`, "sh", "a  'b'"}, "WORDS")
	cmd.Env = append(os.Environ(), "WORDS=two  words")
	in, err := cmd.StdinPipe()
	check.Err(t, err)
	defer in.Close()
	out, err := cmd.Output()
	var exit *exec.ExitError
	if string(out) != "a  'b' two  words\n" || !errors.As(err, &exit) || exit.ExitCode() != 7 {
		t.Errorf("%q, %v", out, err)
	}
}

// If the program that started a command is gone, so is the command, although the container goes on.
func TestExecEndsWithItsInput(t *testing.T) {
	containertest.Setup(t)
	containertest.Run(t, "box", "while :; do busybox sleep 1; done", "-e", "PATH=/bin")
	c := found(t, "box")
	cmd := c.Exec([]string{"busybox", "sh", "-c", "echo up; exec busybox sleep 4711"})
	in, err := cmd.StdinPipe()
	check.Err(t, err)
	out, err := cmd.StdoutPipe()
	check.Err(t, err)
	check.Err(t, cmd.Start())
	_, err = bufio.NewReader(out).ReadString('\n')
	check.Err(t, err)
	pid := sleeping(t, c, "4711")
	check.Err(t, cmd.Process.Kill()) // as if we were killed: it says nothing
	_ = in.Close()
	_ = cmd.Wait()
	for n := 0; ; n++ {
		if _, err := proc.Look(pid); err != nil {
			break
		}
		if time.Sleep(50 * time.Millisecond); n > 200 {
			t.Fatalf("process %d goes on", pid)
		}
	}
}

// sleeping finds a process of the container by a word of its command line.
func sleeping(t *testing.T, c *container.Container, word string) int {
	t.Helper()
	all, err := os.ReadDir("/proc")
	check.Err(t, err)
	for _, e := range all {
		pid, err := strconv.Atoi(e.Name())
		if err == nil && c.Has(pid) && strings.HasSuffix(strings.Join(proc.CommandLine(pid), " "), "sleep "+word) {
			return pid
		}
	}
	t.Fatal("the command does not run in the container")
	return 0
}

// What listens on a container's loopback interface alone is reached, and this machine's is not.
func TestDial(t *testing.T) {
	containertest.Setup(t)
	containertest.Run(t, "web", "echo hello >/tmp/index.html; exec busybox httpd -f -p 127.0.0.1:8080 -h /tmp", "-e", "PATH=/bin")
	c := found(t, "web")
	client := &http.Client{Transport: &http.Transport{DialContext: c.Dial}}
	defer client.CloseIdleConnections()
	for range 20 {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1:8080/index.html", nil)
		check.Err(t, err)
		answer, err := client.Do(r)
		check.Err(t, err)
		text, err := io.ReadAll(answer.Body)
		check.Err(t, err)
		_ = answer.Body.Close()
		cancel()
		if string(text) != "hello\n" {
			t.Fatalf("%q", text)
		}
		client.CloseIdleConnections()
	}
	plain := &http.Client{Transport: &http.Transport{}}
	if answer, err := plain.Get("http://127.0.0.1:8080/index.html"); err == nil {
		_ = answer.Body.Close()
		t.Error("it is reached from outside, too")
	}
}
