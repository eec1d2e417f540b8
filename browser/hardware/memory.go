package hardware

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"llmparity/browser/find"
	"llmparity/internal/host/cache"
	"llmparity/internal/kit/whole"
)

// File is the name of what is kept in the cache folder.
const File = "adapters.json"

// Memory keeps which way worked, by browser and drivers: in a file for later runs. That nothing worked it keeps for
// this process alone, because a missing driver is soon installed.
type Memory struct {
	Path string // empty: nothing is kept in a file

	mu   sync.Mutex
	none map[string]lack // no GPU, in this process
}

// lack is the way with the best adapter that is no GPU, and what was tried.
type lack struct {
	way   string
	tried []string
}

// read returns the names of the ways that worked. A file that cannot be read is as good as none.
func (m *Memory) read() map[string]string {
	all := map[string]string{}
	if text, err := os.ReadFile(m.Path); err == nil && json.Unmarshal(text, &all) != nil {
		return map[string]string{}
	}
	return all
}

// change changes the file. It only saves time, so that it cannot be written does not matter.
func (m *Memory) change(do func(map[string]string)) {
	if m.Path == "" {
		return
	}
	all := m.read()
	do(all)
	if cache.MkdirAll(filepath.Dir(m.Path)) == nil {
		_ = whole.JSON(m.Path, all)
	}
}

func (m *Memory) kept(key string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.read()[key]
}

func (m *Memory) keep(key, way string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.read()[key] != way {
		m.change(func(all map[string]string) { all[key] = way })
	}
}

func (m *Memory) forget(key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.read()[key] != "" {
		m.change(func(all map[string]string) { delete(all, key) })
	}
}

func (m *Memory) lacks(key string) (lack, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l, ok := m.none[key]
	return l, ok
}

func (m *Memory) lacking(key, way string, tried []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.none == nil {
		m.none = map[string]lack{}
	}
	m.none[key] = lack{way, tried}
}

// Key identifies what decides which way works: the browser's build, the kernel, the GPU drivers and the display.
func Key(path string, flags []string) string {
	h := sha256.New()
	add := func(name, value string) { fmt.Fprintf(h, "%s=%q\n", name, value) }
	program, err := filepath.EvalSymlinks(path)
	if err != nil {
		program = path
	}
	add("program", program)
	add("build", find.BuildID(program))
	for _, pattern := range []string{program, "/usr/share/vulkan/icd.d/*", "/etc/vulkan/icd.d/*"} {
		files, _ := filepath.Glob(pattern) // the patterns are valid
		for _, f := range files {
			if info, err := os.Stat(f); err == nil {
				add(f, fmt.Sprint(info.Size(), info.ModTime().UnixNano()))
			}
		}
	}
	for _, pattern := range []string{"/proc/sys/kernel/osrelease", "/proc/driver/nvidia/version",
		"/sys/module/amdgpu/version", "/sys/module/i915/version", "/sys/module/xe/version"} {
		files, _ := filepath.Glob(pattern)
		for _, f := range files {
			if text, err := os.ReadFile(f); err == nil {
				add(f, string(text))
			}
		}
	}
	for _, name := range []string{"VK_DRIVER_FILES", "VK_ICD_FILENAMES", "VK_ADD_DRIVER_FILES", "DISPLAY",
		"WAYLAND_DISPLAY"} {
		add(name, os.Getenv(name))
	}
	add("flags", fmt.Sprintf("%q", flags))
	return fmt.Sprintf("%x", h.Sum(nil))
}
