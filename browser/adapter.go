package browser

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"llmparity/browser/driver"
	"llmparity/internal/kit/fault"
	"llmparity/internal/record"
)

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
		do := p.driver.noAdapter
		switch {
		case p.tab.Facts().Attached:
			do = "start it with --enable-unsafe-webgpu, and on a machine without a GPU with --use-webgpu-adapter=swiftshader"
		case p.config.Adapter.Software() && p.driver.noSoftware != "":
			do = p.driver.noSoftware
		}
		return record.Device{}, fault.New(fault.NoAdapter, do, "%s has no WebGPU adapter here",
			p.tab.Facts().Product)
	}
	more, err := p.tab.Adapter(ctx)
	if err != nil {
		return record.Device{}, fmt.Errorf("asking the browser for its WebGPU adapter: %w", err)
	}
	d := info.known(more).asked(p.config.Adapter)
	if more != nil {
		maps.Copy(d.Detail, map[string]string{"driver": more.Driver, "backend": more.Backend, "type": more.Type})
	}
	return d, nil
}

// known adds what the browser itself knows.
func (a *adapterInfo) known(more *driver.Adapted) *adapterInfo {
	if more == nil {
		return a
	}
	b := *a
	b.Description = cmp.Or(a.Description, more.Name)
	b.Fallback = a.Fallback || strings.EqualFold(more.Type, "cpu")
	return &b
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
	replaced := a.Architecture == string(SwiftShader) || a.Vendor+a.Architecture == "" // by lavapipe, or not named
	if replaced && strings.HasPrefix(a.Description, "llvmpipe") {
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
