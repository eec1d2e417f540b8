package openai

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"llmparity/internal/engine"
	"llmparity/internal/host/machine"
	"llmparity/internal/host/sample/gpu"
	"llmparity/internal/kit/words"
	"llmparity/internal/record"
)

// A server does not say what it computes on.
func (s *session) unknownDevice() record.Device {
	return record.Device{Class: "unknown", Name: "unknown device of " + s.client.at.host}
}

// stated is the device that the plan states; unknown if it states none.
func (s *session) stated() record.Device {
	d := s.unknownDevice()
	switch class := record.DeviceClass(s.config.Device); {
	case class == "":
		return d
	case class == record.CPU && s.client.at.local:
		d.Name = machine.CPU()
	default:
		d.Name = fmt.Sprintf("%s of %s", strings.ToUpper(s.config.Device), s.client.at.host)
	}
	d.Class, d.Origin = record.DeviceClass(s.config.Device), record.DeviceStated
	return d
}

// tellDevice reports the device: the stated one, else what the server's processes hold, if they are visible here.
func (s *session) tellDevice(ctx context.Context) {
	d := s.stated()
	if s.tree != nil {
		found := s.derived(ctx)
		switch known := found.Class == record.CPU || found.Class == record.GPU; {
		case d.Origin == "":
			d = found
		case known && found.Class != d.Class:
			engine.Warn(s.probe, "device-differs", "openai.device states %s, but the server's processes %s", d.Class,
				found.Detail[evidence])
		case known:
			d.Name = found.Name
		}
	}
	s.probe.Event(record.Event{At: time.Now(), Device: &d})
}

// evidence is the detail of a device with what was found.
const evidence = "evidence"

// derived is the device by the GPU memory of the server's processes. A container may hide it from the driver.
func (s *session) derived(ctx context.Context) record.Device {
	m := gpu.Open(ctx, gpu.Options{})
	defer m.Close()
	return deviceOf(ctx, m, s.tree.PIDs(), machine.Container() != "", s.unknownDevice())
}

// deviceOf derives the device of processes. contained says that a driver may not list them; unknown is the device if it
// cannot be known.
func deviceOf(ctx context.Context, m *gpu.Monitor, pids []int, contained bool, unknown record.Device) record.Device {
	d := record.Device{Class: record.CPU, Name: machine.CPU(), Origin: record.DeviceDerived,
		Detail: map[string]string{evidence: "hold no GPU memory"}}
	held, err := m.Memory(ctx, pids)
	switch {
	case len(held) > 0:
		sum := int64(0)
		for _, bytes := range held {
			sum += bytes
		}
		d.Class, d.Name = record.GPU, strings.Join(slices.Sorted(maps.Keys(held)), ", ")
		d.Detail[evidence] = fmt.Sprintf("hold %s of GPU memory", words.Size(sum))
	case err != nil, len(m.GPUs) == 0 && m.None == "", len(m.GPUs) > 0 && contained:
		return unknown
	}
	return d
}
