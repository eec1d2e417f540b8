package firefox

import "llmparity/browser/hardware"

// Ways are those in which Firefox may reach a GPU. Its WebGPU knows Vulkan without flags.
func Ways(string) []hardware.Way {
	return []hardware.Way{{Name: "no flags"}, {Name: "a window", Headed: true}}
}
