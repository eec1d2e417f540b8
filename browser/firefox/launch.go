// Package firefox drives Firefox through WebDriver BiDi: it starts one with an empty profile, opens a page, and finds
// its processes.
//
// Limits: Firefox tells nothing about the memory inside a page, makes no profiles that DevTools of Chrome open, and
// cannot be attached to.
package firefox

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"llmparity/browser/driver"
	"llmparity/browser/store"
	"llmparity/internal/engine"
	"llmparity/internal/host/child"
	"llmparity/internal/kit/fault"
)

// Is reports whether the program is Firefox or a relative, by its name or the files beside it.
func Is(path string) bool {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	if strings.Contains(strings.ToLower(filepath.Base(path)), "firefox") {
		return true
	}
	_, err := os.Stat(filepath.Join(filepath.Dir(path), "omni.ja"))
	return err == nil
}

// oldest is the oldest version that has what we use: its own scripts behind --remote-allow-system-access.
const oldest = 140

// Tab is a running Firefox with one tab.
type Tab struct {
	*driver.Process
	process *child.Process // nil: not started
	conn    *conn          // nil: not connected
	context string         // the tab's, in BiDi's sense
	thread  driver.Thread  // where the engine runs
	base    string         // of the page's files

	renderer atomic.Int64                    // the page's process
	told     atomic.Pointer[driver.Listener] // hears the page's events; nil: nobody
}

var _ driver.Tab = (*Tab)(nil)

// Launch starts path with a new profile. An engine.NotStarted is worth repeating.
func Launch(ctx context.Context, path string, o driver.Options) (driver.Tab, error) {
	p, err := driver.Started("firefox")
	if err != nil {
		return nil, err
	}
	p.Stores = stores
	t := &Tab{Process: p, thread: driver.PageThread}
	t.Ctx, t.End = context.WithCancelCause(context.Background())
	cmd, err := t.command(ctx, path, o)
	if err != nil {
		return nil, errors.Join(err, t.Close())
	}
	if t.process, err = child.StartGuarded(context.Background(), cmd); err != nil {
		return nil, t.Failed(path, &engine.NotStarted{What: err.Error(), Err: err})
	}
	t.About.PID = t.process.PID()
	limits := o.Limits.OrDefault()
	err = t.Stage(ctx, limits.Answer, "Firefox", nil, t.meet)
	if err == nil {
		err = t.Stage(ctx, limits.Tab, "Firefox's first tab", nil, t.first)
	}
	if err != nil {
		return nil, t.Failed(path, fmt.Errorf("starting %s: %w", path, err))
	}
	return t, nil
}

// command writes the profile and returns the command.
func (t *Tab) command(ctx context.Context, path string, o driver.Options) (*exec.Cmd, error) {
	env, err := t.Env(ctx, o.Headed)
	if err != nil {
		return nil, err
	}
	more, err := adapterEnv(o.Adapter)
	if err != nil {
		return nil, err
	}
	prefs, err := preferences(o.Flags)
	if err != nil {
		return nil, err
	}
	if err := os.Mkdir(t.profile(), 0o700); err != nil {
		return nil, fmt.Errorf("making the browser's profile: %w", err)
	}
	if err := t.Restore(o); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(t.profile(), "user.js"), prefs, 0o600); err != nil {
		return nil, fault.WriteError(err, os.TempDir(), "set TMPDIR to another folder")
	}
	args := []string{"--no-remote", "--profile", t.profile(), "--remote-debugging-port=0",
		"--remote-allow-system-access"} // for the numbers of processes, and the name of the adapter
	if !o.Headed {
		args = append(args, "--headless")
	}
	cmd := exec.Command(path, append(args, "about:blank")...)
	quiet := []string{"MOZ_CRASHREPORTER_DISABLE=1", "MOZ_DISABLE_AUTO_SAFE_MODE=1"}
	cmd.Env = slices.Concat(os.Environ(), env, more, quiet)
	cmd.Stdout, cmd.Stderr = t.Words, t.Words
	t.Ran(cmd)
	t.About.Args = append(t.About.Args, strings.Split(strings.TrimSpace(string(prefs)), "\n")...)
	return cmd, nil
}

func (t *Tab) profile() string { return t.Folder() }

// stores are where Firefox keeps what pages store.
var stores = store.Folders{"storage", "storage.sqlite"}

// Quit ends the browser as its user does.
func (t *Tab) Quit(ctx context.Context) error {
	if err := t.call(ctx, "browser.close", map[string]any{}, nil); err != nil && t.Lost() == nil {
		return fmt.Errorf("quitting the browser: %w", err)
	}
	return t.Ends(ctx)
}

// meet waits until Firefox answers, and asks what it is.
func (t *Tab) meet() error {
	address, err := t.address()
	if err != nil {
		return err
	}
	if t.conn, err = dial(t.Ctx, address, t.hear); err != nil {
		return err
	}
	go t.watchConnection()
	var session struct {
		Capabilities struct {
			Browser   string `json:"browserName"`
			Version   string `json:"browserVersion"`
			UserAgent string `json:"userAgent"`
			Build     string `json:"moz:buildID"`
			PID       int    `json:"moz:processID"`
		} `json:"capabilities"`
	}
	none := map[string]any{"capabilities": map[string]any{}}
	if err := t.conn.call(t.Ctx, "session.new", none, &session); err != nil {
		return err
	}
	c := session.Capabilities
	if err := supported(title(c.Browser), c.Version); err != nil {
		return err
	}
	if c.PID != 0 {
		t.About.PID = c.PID // of the program, which a script may have started
	}
	t.About.Product = title(c.Browser) + "/" + c.Version
	t.About.Parts = map[string]string{"user_agent": c.UserAgent, "browser_build": c.Build}
	events := map[string]any{"events": []string{"script.message", "log.entryAdded"}}
	return t.conn.call(t.Ctx, "session.subscribe", events, nil)
}

// supported refuses a version that is too old.
func supported(name, version string) error {
	text, _, _ := strings.Cut(version, ".")
	if major, err := strconv.Atoi(text); err != nil || major < oldest {
		return fault.New(fault.NoChrome, "install a newer one, or use Chrome",
			"%s %s is too old: llmparity needs %d", name, version, oldest)
	}
	return nil
}

func title(name string) string {
	return strings.ToUpper(name[:min(1, len(name))]) + name[min(1, len(name)):]
}

// address waits for the file in which Firefox says where it listens.
func (t *Tab) address() (string, error) {
	for t.Ctx.Err() == nil {
		var at struct {
			Host string `json:"ws_host"`
			Port int    `json:"ws_port"`
		}
		text, err := os.ReadFile(filepath.Join(t.profile(), "WebDriverBiDiServer.json"))
		if err == nil && json.Unmarshal(text, &at) == nil && at.Port != 0 {
			return fmt.Sprintf("ws://%s:%d/session", at.Host, at.Port), nil
		}
		if t.process.Ended(10 * time.Millisecond) {
			return "", errors.New(cmp.Or(t.Telling(), "it ended: "+t.process.Exit()))
		}
	}
	return "", context.Cause(t.Ctx)
}

// first finds the tab that Firefox opened, and waits for it.
func (t *Tab) first() error {
	var tree struct {
		Contexts []struct {
			Context string `json:"context"`
		} `json:"contexts"`
	}
	if err := t.conn.call(t.Ctx, "browsingContext.getTree", map[string]any{}, &tree); err != nil {
		return err
	}
	if len(tree.Contexts) == 0 {
		return errors.New("it has no tab")
	}
	t.context = tree.Contexts[0].Context
	return t.Turns(t.Ctx)
}

// watchConnection makes the tab lost when Firefox ends.
func (t *Tab) watchConnection() {
	<-t.conn.done
	if t.Ctx.Err() != nil {
		return
	}
	how := "its connection ended"
	if t.process.Ended(ends) {
		how = t.process.Exit()
	}
	class, how := t.vanished(how)
	t.Lose(engine.Fail(class, "the browser ended unexpectedly (%s)", how))
}

// ends is how long Firefox may take to end once its connection has.
const ends = 2 * time.Second

// Failed ends a browser that did not become ready, with a report about it.
func (t *Tab) Failed(path string, err error) error {
	if err = t.Failure(path, err); t.process == nil {
		err = driver.NotExecuted(path, err)
	}
	return errors.Join(err, t.Close())
}

// Close kills every process of the browser, since the profile need not be saved, and removes its folders.
func (t *Tab) Close() error {
	t.Lose(driver.ErrClosed)
	if t.process != nil {
		t.process.Kill()
	}
	t.StagesEnded()
	if t.conn != nil {
		t.conn.close()
	}
	t.Display.Close()
	return os.RemoveAll(t.Scratch)
}
