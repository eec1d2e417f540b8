package browser

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"llmparity/browser/driver"
	"llmparity/internal/engine"
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

	// What only developers' features or the browser itself tell; empty without them.
	Backend string `json:"backend"` // vulkan, metal, d3d12, opengles …
	Type    string `json:"type"`    // discrete GPU, integrated GPU, CPU, unknown
	Driver  string `json:"driver"`
	Power   string `json:"power"` // the power preference that the adapter has
}

// Device asks the page for its adapter.
func (p *Page) Device(ctx context.Context) (record.Device, error) {
	if p.device != nil {
		return *p.device, nil
	}
	info, err := Call[*adapterInfo](ctx, p, "llmparity.adapter()")
	if err != nil {
		return record.Device{}, fmt.Errorf("asking for the WebGPU adapter: %w", err)
	}
	if info == nil {
		do := p.driver.noAdapter
		switch {
		case p.config.Launch.Attach != "":
			do = "start it with --enable-unsafe-webgpu, and on a machine without a GPU with --use-webgpu-adapter=swiftshader"
		case p.config.Adapter.Software() && p.driver.noSoftware != "":
			do = p.driver.noSoftware
		}
		return record.Device{}, engine.SetUp(fault.New(fault.NoAdapter, do, "%s has no WebGPU adapter here",
			p.tab.Facts().Product))
	}
	more, err := p.tab.Adapter(ctx)
	if err != nil {
		return record.Device{}, fmt.Errorf("asking the browser for its WebGPU adapter: %w", err)
	}
	return info.known(more).asked(p.config.Adapter), nil
}

// known adds what the browser itself knows.
func (a *adapterInfo) known(more *driver.Adapted) *adapterInfo {
	if more == nil {
		return a
	}
	b := *a
	b.Description = cmp.Or(a.Description, more.Name)
	b.Backend, b.Type, b.Driver = more.Backend, more.Type, more.Driver
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
	for name, value := range map[string]string{record.DetailBackend: a.Backend, record.DetailType: a.Type,
		record.DetailDriver: a.Driver, detailPower: a.Power} {
		if value != "" {
			d.Detail[name] = value
		}
	}
	d.Class = a.class()
	return d
}

// detailPower is the power preference of the adapter, as the browser tells it.
const detailPower = "power_preference"

// class also checks names, because a browser may not call a software adapter a fallback, and Vulkan calls a virtual
// machine's device neither CPU nor GPU.
func (a *adapterInfo) class() record.DeviceClass {
	name := a.name()
	switch {
	case a.Fallback || strings.EqualFold(a.Type, "cpu") || record.SoftwareGPU(name):
		return record.SoftwareAdapter
	case strings.HasPrefix(strings.ToLower(a.Backend), "opengl"):
		return record.OpenGLAdapter
	case record.VirtualName(name):
		return record.VirtualGPU
	}
	return record.GPU
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
