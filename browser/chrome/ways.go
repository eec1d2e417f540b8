package chrome

import "llmparity/browser/hardware"

// Ways are what Chrome needs on some systems to reach a GPU with WebGPU, in the order in which they are tried. On Linux
// it may know no Vulkan without the flags, or none without a window.
func Ways(goos string) []hardware.Way {
	const ignore = "ignore-gpu-blocklist"
	if goos != "linux" {
		return []hardware.Way{{Name: "no flags"}, {Name: ignore, Flags: []string{ignore}}}
	}
	vulkan := []string{"enable-features=Vulkan,WebGPU", "use-angle=vulkan", ignore}
	return []hardware.Way{{Name: "no flags"}, {Name: "Vulkan", Flags: vulkan}, {Name: "a window", Headed: true},
		{Name: "a window and Vulkan", Flags: vulkan, Headed: true}}
}
