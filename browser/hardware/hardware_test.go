package hardware_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"llmparity/browser/hardware"
	"llmparity/internal/engine"
	"llmparity/internal/kit/check"
	"llmparity/internal/kit/fault"
	"llmparity/internal/record"
)

// machine is what a browser would find in each way: an adapter's name, or an error. It keeps which ways were tried and
// which pages are open.
type machine struct {
	answers map[string]any
	tried   []string
	open    []string
}

var ways = []hardware.Way{{Name: "plain"}, {Name: "flags", Flags: []string{"a"}}, {Name: "window", Headed: true}}

func (m *machine) search(memory *hardware.Memory) hardware.Search[string] {
	return hardware.Search[string]{Ways: ways, Memory: memory, Key: "here",
		Open: func(_ context.Context, w hardware.Way) (string, record.Device, error) {
			m.tried = append(m.tried, w.Name)
			switch a := m.answers[w.Name].(type) {
			case error:
				return "", record.Device{}, a
			case record.DeviceClass:
				m.open = append(m.open, w.Name)
				return w.Name, record.Device{Class: a, Name: "X", Detail: map[string]string{"backend": "vulkan"}}, nil
			}
			return "", record.Device{}, errNoAdapter
		},
		Close: func(page string) error {
			m.open = slices.DeleteFunc(m.open, func(p string) bool { return p == page })
			return nil
		}}
}

var (
	errNoAdapter = fault.New(fault.NoAdapter, "", "none")
	errCrash     = engine.Fail(record.Start, "%w", fault.New(fault.NoChrome, "", "died"))
)

func TestOrder(t *testing.T) {
	type answers = map[string]any
	for name, c := range map[string]struct {
		answers
		page  string
		tried string // the answers that the device has
	}{
		"a GPU at once": {answers{"plain": record.GPU, "flags": record.GPU}, "plain", ""},
		"a GPU with flags": {answers{"plain": record.SoftwareAdapter, "flags": record.GPU}, "flags",
			"plain: X (software-adapter, vulkan)"},
		"a GPU in a window": {answers{"flags": errCrash, "window": record.GPU}, "window", "plain: no adapter; flags: does not start"},
		"OpenGL is no GPU": {answers{"plain": record.OpenGLAdapter, "window": record.GPU}, "window",
			"plain: X (opengl-adapter, vulkan); flags: no adapter"},
		"nothing but software": {answers{"flags": record.SoftwareAdapter, "window": record.VirtualGPU}, "flags",
			"plain: no adapter; flags: X (software-adapter, vulkan); window: X (virtual-gpu, vulkan)"},
		"no display": {answers{"plain": record.SoftwareAdapter, "window": fault.New(fault.NoDisplay, "", "no Xvfb")},
			"plain", "plain: X (software-adapter, vulkan); flags: no adapter; window: no display"},
	} {
		m := machine{answers: c.answers}
		page, d, err := m.search(&hardware.Memory{}).Find(t.Context())
		check.Err(t, err)
		if got := strings.Join(d.Tried(), "; "); page != c.page || got != c.tried || d.Detail["way"] != c.page {
			t.Errorf("%s: page %s, way %s, tried %s", name, page, d.Detail["way"], got)
		}
		if !slices.Equal(m.open, []string{c.page}) {
			t.Errorf("%s: open pages: %v", name, m.open)
		}
	}
}

func TestNothing(t *testing.T) {
	m := machine{}
	_, _, err := m.search(&hardware.Memory{}).Find(t.Context())
	nothing, ok := errors.AsType[*hardware.Nothing](err)
	if !ok || len(nothing.Tried) != 3 || fault.Of(err) != fault.NoAdapter ||
		!strings.Contains(err.Error(), "tried plain: no adapter; flags: no adapter; window: no adapter") {
		t.Errorf("%v", err)
	}
}

// What would fail in every way ends the search, and no page stays open.
func TestOtherErrorsEndTheSearch(t *testing.T) {
	full := fault.New(fault.DiskFull, "", "full")
	for name, answers := range map[string]map[string]any{
		"a full disk":                   {"plain": record.SoftwareAdapter, "flags": full},
		"a browser that does not start": {"plain": errCrash},
	} {
		m := machine{answers: answers}
		_, _, err := m.search(&hardware.Memory{}).Find(t.Context())
		if err == nil || len(m.open) > 0 || len(m.tried) > 2 {
			t.Errorf("%s: %v, open %v, tried %v", name, err, m.open, m.tried)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	m := machine{}
	if _, _, err := m.search(&hardware.Memory{}).Find(ctx); err == nil || len(m.tried) != 1 {
		t.Errorf("cancelled: %v, tried %v", err, m.tried)
	}
}

// What worked is tried first in later runs, until it no longer works.
func TestKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cache", hardware.File)
	m := machine{answers: map[string]any{"plain": record.SoftwareAdapter, "window": record.GPU}}
	find := func(want string, tried ...string) {
		t.Helper()
		m.tried, m.open = nil, nil
		page, _, err := m.search(&hardware.Memory{Path: path}).Find(t.Context()) // as another process would
		check.Err(t, err)
		if page != want || !slices.Equal(m.tried, tried) {
			t.Errorf("page %s after %v", page, m.tried)
		}
	}
	find("window", "plain", "flags", "window")
	find("window", "window")
	m.answers = map[string]any{"plain": record.GPU}
	find("plain", "window", "plain")
	find("plain", "plain")
	m.answers = map[string]any{"flags": record.SoftwareAdapter}
	find("flags", "plain", "flags", "window")
	m.answers = map[string]any{"plain": record.SoftwareAdapter, "flags": record.GPU}
	find("flags", "plain", "flags")
	check.Err(t, os.WriteFile(path, []byte("broken"), 0o600))
	find("flags", "plain", "flags")
	find("flags", "flags")
}

// Without a GPU, a process looks once.
func TestLookedOnce(t *testing.T) {
	var memory hardware.Memory
	m := machine{answers: map[string]any{"flags": record.SoftwareAdapter}}
	for _, tried := range [][]string{{"plain", "flags", "window"}, {"flags"}} {
		m.tried = nil
		page, d, err := m.search(&memory).Find(t.Context())
		check.Err(t, err)
		if page != "flags" || !slices.Equal(m.tried, tried) || len(d.Tried()) != 3 {
			t.Errorf("%s: %v, tried %v", page, m.tried, d.Tried())
		}
	}
}

// Another build of the browser, other flags, or another display can need another way.
func TestKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "browser")
	check.Err(t, os.WriteFile(path, []byte("1"), 0o700))
	first := hardware.Key(path, nil)
	if hardware.Key(path, nil) != first || hardware.Key(path, []string{"x"}) == first {
		t.Error("the same browser with the same flags has one key")
	}
	t.Setenv("DISPLAY", ":777")
	if hardware.Key(path, nil) == first {
		t.Error("a display does not matter")
	}
	check.Err(t, os.WriteFile(path, []byte("22"), 0o700))
	t.Setenv("DISPLAY", os.Getenv("DISPLAY"))
	if hardware.Key(path, nil) == first {
		t.Error("another build has the same key")
	}
}
