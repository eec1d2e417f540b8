package watch_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// What may not be read is said once, and the rest goes on. Root may read everything, so a nobody tries it then.
func TestWhatMayNotBeRead(t *testing.T) {
	pid := 1
	cmd := exec.Command(os.Args[0])
	if os.Geteuid() == 0 {
		sleep, _ := sleeper(t)
		pid = sleep.Process.Pid
		const nobody = 65534
		cmd = exec.Command(forAll(t, os.Args[0]))
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), asWatcher+"="+strconv.Itoa(pid), everyOf+"=20ms", pssOf+"=20ms")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for lines := bufio.NewScanner(out); lines.Scan(); { // until it ends, which it does when its input is closed
		fmt.Fprintln(&text, lines.Text())
		if strings.Count(text.String(), "\n") > 3 {
			_ = in.Close()
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, &errs)
	}
	if n := strings.Count(errs.String(), "may not be read by this user"); n != 1 {
		t.Errorf("said %d times:\n%s", n, &errs)
	}
	rows := parse(t, text.String())
	if len(rows) < 2 || rows[len(rows)-1]["pss_mb"] != "" {
		t.Errorf("rows: %v", rows)
	}
}

// forAll gives a copy of a program that every user may run.
func forAll(t *testing.T, path string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "watch")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	from, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = from.Close() }() // it was only read
	to, err := os.OpenFile(filepath.Join(dir, "watcher"), os.O_WRONLY|os.O_CREATE, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(to, from); err != nil {
		t.Fatal(err)
	}
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
	return to.Name()
}
