package evidence

import (
	"cmp"
	"fmt"

	"llmparity/internal/record"
)

// DeviceWords is a device in a sentence.
func DeviceWords(d *record.Device) string {
	class := cmp.Or(classes[d.Class], string(d.Class))
	if d.Name != "" {
		return fmt.Sprintf("%s (%s)", class, d.Name)
	}
	return class
}

// classes are the known classes of devices, as sentences call them.
var classes = map[record.DeviceClass]string{record.SoftwareAdapter: "a software adapter", record.CPU: "the CPU",
	record.GPU: "a GPU", record.VirtualGPU: "a virtual GPU", record.OpenGLAdapter: "WebGPU on OpenGL"}

// KnownClass reports whether a class of device is one of record's.
func KnownClass(class record.DeviceClass) bool { return classes[class] != "" }

// LastReported returns the engine's most complete description: it says more once it has a model.
func LastReported(a *record.Attempt) *record.EngineInfo {
	var out *record.EngineInfo
	for _, e := range a.Events {
		if e.Engine != nil && (out == nil || len(e.Engine.Identity())+len(e.Engine.Policy) >=
			len(out.Identity())+len(out.Policy)) {
			out = e.Engine
		}
	}
	return out
}
