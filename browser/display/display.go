// Package display starts a private X display, for a browser with a window on a machine without one.
package display

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"llmparity/internal/host/child"
	"llmparity/internal/kit/fault"
)

// Display is an Xvfb that we start for a browser with a window if there is no display. It uses the first free number,
// no network, and requires a cookie. If it is killed together with us, its socket remains in /tmp/.X11-unix until the
// next X server with that number replaces it. Its memory is not counted as the browser's.
type Display struct {
	*child.Process
	Name   string // ":99"
	cookie string // file
}

// Env returns the environment for a browser with a window, and a display if one had to be started.
func Env(ctx context.Context, scratch string) ([]string, *Display, error) {
	switch {
	case runtime.GOOS == "windows" || runtime.GOOS == "darwin":
		return nil, nil, nil
	case os.Getenv("DISPLAY") != "" || os.Getenv("WAYLAND_DISPLAY") != "":
		return ownCookie(), nil, nil
	}
	d, err := start(ctx, scratch)
	if err != nil {
		return nil, nil, err
	}
	return []string{"DISPLAY=" + d.Name, "XAUTHORITY=" + d.cookie}, d, nil
}

// ownCookie keeps the user's access to their display, since the browser gets another home folder.
func ownCookie() []string {
	home, err := os.UserHomeDir()
	if err != nil || os.Getenv("XAUTHORITY") != "" {
		return nil
	}
	path := filepath.Join(home, ".Xauthority")
	if _, err := os.Stat(path); err != nil {
		return nil
	}
	return []string{"XAUTHORITY=" + path}
}

// ready is how long Xvfb may take to start.
const ready = 20 * time.Second

// start starts an Xvfb, which runs until Close.
func start(ctx context.Context, scratch string) (_ *Display, err error) {
	const get = "install Xvfb (Debian: apt install xvfb), or omit --headed"
	path, err := exec.LookPath("Xvfb")
	if err != nil {
		return nil, fault.New(fault.NoDisplay, get,
			"--headed needs a display: neither DISPLAY nor WAYLAND_DISPLAY is set, and Xvfb is not on PATH")
	}
	d := &Display{cookie: filepath.Join(scratch, "xauthority")}
	if err := os.WriteFile(d.cookie, newCookie(), 0o600); err != nil {
		return nil, fmt.Errorf("writing the display's cookie: %w", err)
	}
	number, reported, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("making a pipe: %w", err)
	}
	defer number.Close()
	words := &child.Tail{Max: 4096}
	cmd := exec.Command(path, "-displayfd", "3", "-screen", "0", "1280x1024x24", "-nolisten", "tcp", "-auth", d.cookie)
	cmd.ExtraFiles, cmd.Stdout, cmd.Stderr = []*os.File{reported}, words, words
	d.Process, err = child.Start(context.WithoutCancel(ctx), cmd)
	reported.Close() // the child has its own
	if err != nil {
		return nil, fault.Wrap(fault.NoDisplay, err, get, "cannot start a display")
	}
	defer context.AfterFunc(ctx, d.Kill)()
	defer time.AfterFunc(ready, d.Kill).Stop()
	line, err := bufio.NewReader(number).ReadString('\n')
	if err != nil {
		d.Close()
		if ctx.Err() != nil {
			return nil, fmt.Errorf("starting a display: %w", ctx.Err())
		}
		return nil, fault.New(fault.NoDisplay, "start it by hand to see why", "%s did not start a display: %s", path,
			strings.Join(words.Lines(1), " "))
	}
	d.Name = ":" + strings.TrimSpace(line)
	return d, nil
}

// Close ends the display politely, so that it removes its lock.
func (d *Display) Close() {
	if d != nil {
		d.Stop(2 * time.Second)
	}
}

// newCookie returns an Xauthority file for displays of any number: family (any), address, number, method and cookie,
// each text preceded by its length.
func newCookie() []byte {
	const anyFamily = 0xffff
	var b bytes.Buffer
	b.Write(binary.BigEndian.AppendUint16(nil, anyFamily))
	cookie := make([]byte, 16)
	_, _ = rand.Read(cookie) // it never fails
	for _, text := range [][]byte{nil, nil, []byte("MIT-MAGIC-COOKIE-1"), cookie} {
		b.Write(binary.BigEndian.AppendUint16(nil, uint16(len(text))))
		b.Write(text)
	}
	return b.Bytes()
}
