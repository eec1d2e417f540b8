package browser

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

	"llmparity/internal/child"
	"llmparity/internal/fault"
)

// display is a screen that nobody sees: an Xvfb of our own, for a browser with a window where there is no display. It
// takes the first number that is free, listens on no network, and lets in who has its cookie. Killed together with us
// it leaves its socket in /tmp/.X11-unix, which the next X server of that number replaces. Its memory is nobody's: it
// is not the browser's.
type display struct {
	process *child.Process
	name    string // ":99"
	cookie  string // the file
}

// displayed gives the environment that a browser with a window needs, and, where it needs one of its own, its display.
func displayed(ctx context.Context, scratch string) ([]string, *display, error) {
	switch {
	case runtime.GOOS == "windows" || runtime.GOOS == "darwin":
		return nil, nil, nil
	case os.Getenv("DISPLAY") != "" || os.Getenv("WAYLAND_DISPLAY") != "":
		return ownCookie(), nil, nil
	}
	d, err := startDisplay(ctx, scratch)
	if err != nil {
		return nil, nil, err
	}
	return []string{"DISPLAY=" + d.name, "XAUTHORITY=" + d.cookie}, d, nil
}

// ownCookie keeps the user's way into their display: it lies in their home, and the browser is given another.
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

// displayReady is how long an Xvfb may take to be there.
const displayReady = 20 * time.Second

// startDisplay starts an Xvfb, which lives until close.
func startDisplay(ctx context.Context, scratch string) (_ *display, err error) {
	const get = "install it (Debian: apt install xvfb), or leave --headed out"
	path, err := exec.LookPath("Xvfb")
	if err != nil {
		return nil, fault.New(fault.NoDisplay, get,
			"--headed needs a display, there is none (neither DISPLAY nor WAYLAND_DISPLAY is set), and Xvfb is not on PATH")
	}
	d := &display{cookie: filepath.Join(scratch, "xauthority")}
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
	d.process, err = child.Start(context.WithoutCancel(ctx), cmd)
	reported.Close() // the child has its own
	if err != nil {
		return nil, fault.Wrap(fault.NoDisplay, err, get, "no display can be made")
	}
	defer context.AfterFunc(ctx, d.process.Kill)()
	defer time.AfterFunc(displayReady, d.process.Kill).Stop()
	line, err := bufio.NewReader(number).ReadString('\n')
	if err != nil {
		d.close()
		if ctx.Err() != nil {
			return nil, fmt.Errorf("starting a display: %w", ctx.Err())
		}
		return nil, fault.New(fault.NoDisplay, "start it by hand to see why", "%s gives no display: %s", path,
			strings.Join(words.Lines(1), " "))
	}
	d.name = ":" + strings.TrimSpace(line)
	return d, nil
}

// close ends the display politely, so that it removes its lock.
func (d *display) close() {
	if d != nil {
		d.process.Stop(2 * time.Second)
	}
}

// newCookie makes a file that lets its owner into a display of any number, in the format of Xau: family (any), address,
// number, name of the method, and the cookie, each text with its length before it.
func newCookie() []byte {
	const anyFamily = 0xffff
	var b bytes.Buffer
	b.Write(binary.BigEndian.AppendUint16(nil, anyFamily))
	cookie := make([]byte, 16)
	_, _ = rand.Read(cookie) // never fails: it ends the program instead
	for _, text := range [][]byte{nil, nil, []byte("MIT-MAGIC-COOKIE-1"), cookie} {
		b.Write(binary.BigEndian.AppendUint16(nil, uint16(len(text))))
		b.Write(text)
	}
	return b.Bytes()
}
