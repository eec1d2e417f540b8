package firefox

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"llmparity/browser/driver"
	"llmparity/internal/kit/fault"
)

// ours are the preferences that measuring needs, beside those that Firefox sets itself when it is driven.
var ours = []struct {
	name  string
	value any
}{
	{"dom.webgpu.enabled", true},
	{"dom.webgpu.workers.enabled", true},
	{"gfx.webgpu.ignore-blocklist", true}, // software adapters are on the list
	{"gfx.webgpu.force-enabled", true},
	{"dom.testing.testutils.enabled", true},     // garbage can be collected
	{"dom.ipc.processPrelaunch.enabled", false}, // spare processes take memory
	{"browser.tabs.unloadOnLowMemory", false},   // ours is the only one
	{"browser.sessionstore.resume_from_crash", false},
	{"toolkit.startup.max_resumed_crashes", -1},
	{"network.proxy.type", 0}, // the page is on loopback
	{"media.gmp-manager.updateEnabled", false},
	{"app.normandy.enabled", false},
}

// preferences returns the profile's user.js, with those of users, NAME=VALUE.
func preferences(users []string) ([]byte, error) {
	var b bytes.Buffer
	for _, p := range ours {
		fmt.Fprintf(&b, "user_pref(%q, %v);\n", p.name, p.value)
	}
	for _, text := range users {
		name, value, err := preference(text)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, "user_pref(%q, %s);\n", name, value)
	}
	return b.Bytes(), nil
}

// preference parses NAME=VALUE. A value is true, false, a whole number, or a text.
func preference(text string) (name, value string, err error) {
	name, value, ok := strings.Cut(text, "=")
	if !ok || !strings.Contains(name, ".") || strings.ContainsAny(name, "\"\\\n ") {
		return "", "", fault.New(fault.Usage, "write NAME=VALUE, as about:config has them",
			"--chrome-flag %q is not a preference of Firefox", text)
	}
	for _, p := range ours {
		if p.name == name {
			return "", "", fault.New(fault.Usage, "omit it; measuring needs this setting",
				"--chrome-flag %s is not allowed", name)
		}
	}
	if _, err := strconv.Atoi(value); err == nil || value == "true" || value == "false" {
		return name, value, nil
	}
	quoted, err := json.Marshal(value)
	return name, string(quoted), err
}

// Check refuses settings that Firefox lacks.
func Check(o driver.Options, _ string) error {
	if o.Attach != "" {
		return fault.New(fault.Usage, "omit one", "--attach cannot be combined with Firefox, which llmparity starts itself")
	}
	if _, err := adapterEnv(o.Adapter); err != nil {
		return err
	}
	_, err := preferences(o.Flags)
	return err
}

// lavapipe is where Vulkan's loader finds Mesa's CPU adapter.
const lavapipe = "/usr/share/vulkan/icd.d/lvp_icd*.json"

// adapterEnv makes Firefox offer the adapter. On a machine without a GPU, lavapipe is the only one.
func adapterEnv(a driver.Adapter) ([]string, error) {
	if !a.Software() {
		return nil, nil
	}
	found, _ := filepath.Glob(lavapipe) // the pattern is valid
	switch {
	case a == driver.SwiftShader:
		return nil, fault.New(fault.NotSupported, "use --adapter lavapipe", "Firefox has no SwiftShader")
	case len(found) > 0:
		return []string{"VK_DRIVER_FILES=" + found[0]}, nil
	case a == driver.Lavapipe:
		return nil, fault.New(fault.NoAdapter, "install Mesa's Vulkan drivers (Debian: apt install mesa-vulkan-drivers)",
			"lavapipe is not in %s", filepath.Dir(lavapipe))
	}
	return nil, nil // the page may not need WebGPU
}
