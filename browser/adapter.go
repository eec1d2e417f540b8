package browser

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"strings"

	"llmparity/internal/host/machine"
	"llmparity/internal/kit/fault"
	"llmparity/internal/record"

	"github.com/chromedp/chromedp"
)

// Adapter selects what WebGPU computes on.
type Adapter string

// Auto is SwiftShader if the machine has no GPU, else the browser's choice.
const (
	Auto        Adapter = "auto"
	SwiftShader Adapter = "swiftshader"
	Lavapipe    Adapter = "lavapipe" // Mesa's CPU adapter, in the browser that `scripts/setup lavapipe` makes
	GPU         Adapter = "gpu"
)

// ParseAdapter parses a user's choice; empty is Auto.
func ParseAdapter(s string) (Adapter, error) {
	switch a := Adapter(s); a {
	case "":
		return Auto, nil
	case Auto, SwiftShader, Lavapipe, GPU:
		return a, nil
	}
	return "", fault.New(fault.Usage, "use auto, swiftshader, lavapipe or gpu", "unknown adapter %q", s)
}

// Software predicts whether the adapter runs on the CPU, before the browser runs, because a model library is compiled
// for one kind of adapter. The record has the real adapter.
func (a Adapter) Software() bool {
	return a == SwiftShader || a == Lavapipe || a != GPU && runtime.GOOS == "linux" && !machine.HasGPU()
}

// flags make the browser offer the adapter.
func (a Adapter) flags() (out []chromedp.ExecAllocatorOption) {
	if a.Software() { // with developer features, lavapipe says its name
		out = append(out, chromedp.Flag("use-webgpu-adapter", "swiftshader"),
			chromedp.Flag("enable-webgpu-developer-features", a == Lavapipe))
	}
	return out
}

// adapterInfo is what the page reports about its adapter.
type adapterInfo struct {
	Vendor       string           `json:"vendor"`
	Architecture string           `json:"architecture"`
	Device       string           `json:"device"`
	Description  string           `json:"description"`
	Fallback     bool             `json:"fallback"`
	Features     []string         `json:"features"`
	Limits       map[string]int64 `json:"limits"`
}

// Device asks the page for its adapter.
func (p *Page) Device(ctx context.Context) (record.Device, error) {
	info, err := Call[*adapterInfo](ctx, p, "llmparity.adapter()")
	if err != nil {
		return record.Device{}, fmt.Errorf("asking for the WebGPU adapter: %w", err)
	}
	if info == nil {
		do := "try --adapter swiftshader"
		switch {
		case p.chrome.attached:
			do = "start it with --enable-unsafe-webgpu, and on a machine without a GPU with --use-webgpu-adapter=swiftshader"
		case p.config.Adapter.Software():
			do = "use a newer Chrome, which includes SwiftShader for WebGPU"
		}
		return record.Device{}, fault.New(fault.NoAdapter, do, "%s has no WebGPU adapter here",
			p.chrome.version.Product)
	}
	return info.asked(p.config.Adapter), nil
}

// asked returns the device, with the choice that asked for it.
func (a *adapterInfo) asked(choice Adapter) record.Device {
	d := a.device()
	if choice != Auto {
		d.Asked = string(choice)
	}
	return d
}

// Features returns an adapter's WebGPU features.
func Features(d record.Device) []string { return strings.Fields(d.Detail["features"]) }

func (a *adapterInfo) device() record.Device {
	if a.Architecture == string(SwiftShader) && strings.HasPrefix(a.Description, "llvmpipe") { // in SwiftShader's place
		a.Vendor, a.Architecture, a.Device = "mesa", string(Lavapipe), ""
	}
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

// software also checks names, because a browser may not call a software adapter a fallback.
func (a *adapterInfo) software() bool {
	return a.Fallback || record.SoftwareGPU(a.name())
}

func (a *adapterInfo) name() string {
	var parts []string
	for _, s := range []string{a.Vendor, a.Architecture, a.Device, a.Description} {
		if s != "" && !strings.Contains(strings.Join(parts, " "), s) {
			parts = append(parts, s)
		}
	}
	name := strings.Join(parts, " ")
	switch {
	case name == "":
		return "unnamed adapter"
	case strings.Contains(strings.ToLower(name), "swiftshader"):
		return "SwiftShader"
	}
	return name
}
