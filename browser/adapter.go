package browser

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"llmparity/internal/fault"
	"llmparity/internal/record"
)

// Adapter says what WebGPU shall compute on.
type Adapter string

// The choices. Auto takes SwiftShader where the machine shows no GPU, else what the browser chooses.
const (
	Auto        Adapter = "auto"
	SwiftShader Adapter = "swiftshader"
	GPU         Adapter = "gpu"
)

// ParseAdapter checks a user's choice; empty is Auto.
func ParseAdapter(s string) (Adapter, error) {
	switch a := Adapter(s); a {
	case "":
		return Auto, nil
	case Auto, SwiftShader, GPU:
		return a, nil
	}
	return "", fault.New(fault.Usage, "use auto, swiftshader or gpu", "there is no adapter %q", s)
}

// Software tells whether the adapter will be SwiftShader, as far as that can be known before the browser runs: the
// record has what it really was. A model library may be compiled for either.
func (a Adapter) Software() bool {
	return a == SwiftShader || a != GPU && runtime.GOOS == "linux" && !hasGPU()
}

// hasGPU looks for the device files of GPU drivers.
func hasGPU() bool {
	for _, pattern := range []string{"/dev/dri/renderD*", "/dev/nvidia[0-9]*", "/dev/kfd", "/dev/dxg"} {
		if found, _ := filepath.Glob(pattern); len(found) > 0 { // the patterns are well formed
			return true
		}
	}
	return false
}

// adapterInfo is what the page says of its adapter.
type adapterInfo struct {
	Vendor       string           `json:"vendor"`
	Architecture string           `json:"architecture"`
	Device       string           `json:"device"`
	Description  string           `json:"description"`
	Fallback     bool             `json:"fallback"`
	Features     []string         `json:"features"`
	Limits       map[string]int64 `json:"limits"`
}

// Device asks the page which adapter it has.
func (p *Page) Device(ctx context.Context) (record.Device, error) {
	info, err := Call[*adapterInfo](ctx, p, "llmparity.adapter()")
	if err != nil {
		return record.Device{}, fmt.Errorf("asking for the WebGPU adapter: %w", err)
	}
	if info == nil {
		do := "choose another with --adapter swiftshader"
		switch {
		case p.chrome.attached:
			do = "start it with --enable-unsafe-webgpu, and on a machine without a GPU with --use-webgpu-adapter=swiftshader"
		case p.config.Adapter.Software():
			do = "a newer Chrome has SwiftShader for WebGPU built in"
		}
		return record.Device{}, fault.New(fault.NoAdapter, do, "%s has no WebGPU adapter here",
			p.chrome.version.Product)
	}
	return info.device(), nil
}

// Unmet is a warning where the browser hands out another adapter than the one that was asked for by its kind.
func (p *Page) Unmet(d record.Device) []record.Warning {
	asked := p.config.Adapter
	if asked == GPU && d.Class == record.SoftwareAdapter || asked == SwiftShader && d.Class != record.SoftwareAdapter {
		return []record.Warning{{Code: "other-adapter",
			Text: fmt.Sprintf("the adapter %s was asked for, and the browser hands out %s (%s)", asked, d.Name, d.Class)}}
	}
	return nil
}

// Features are the WebGPU features of an adapter.
func Features(d record.Device) []string { return strings.Fields(d.Detail["features"]) }

func (a *adapterInfo) device() record.Device {
	d := record.Device{Class: record.GPU, Name: a.name(), Detail: map[string]string{
		"vendor": a.Vendor, "architecture": a.Architecture, "device": a.Device, "description": a.Description,
		"fallback": strconv.FormatBool(a.Fallback), "features": strings.Join(a.Features, " "),
	}}
	for name, value := range a.Limits {
		d.Detail[name] = strconv.FormatInt(value, 10)
	}
	if a.software() {
		d.Class = record.SoftwareAdapter
	}
	return d
}

// software goes by the names too: a browser may hand out a software adapter without calling it a fallback.
func (a *adapterInfo) software() bool {
	names := strings.ToLower(a.name())
	for _, s := range []string{"swiftshader", "llvmpipe", "lavapipe", "basic render", "warp"} {
		if strings.Contains(names, s) {
			return true
		}
	}
	return a.Fallback
}

func (a *adapterInfo) name() string {
	var parts []string
	for _, s := range []string{a.Vendor, a.Architecture, a.Device, a.Description} {
		if s != "" && !strings.Contains(strings.Join(parts, " "), s) {
			parts = append(parts, s)
		}
	}
	if len(parts) == 0 {
		return "unnamed adapter"
	}
	return strings.Join(parts, " ")
}
