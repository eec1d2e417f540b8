package explain

// The reasons of pairs of cells. They name engines, so that many pairs share a sentence.
var (
	MaxTokensDiffer   = Reason{"max-tokens", "max_tokens differs: %d and %d", "max_tokens differs"}
	TemperatureDiffer = Reason{"temperature", "temperature differs: %g and %g", "temperature differs"}

	NoLaunch       = Reason{"no-launch", "no launch of %s counts", ""}
	NoDevice       = Reason{"no-device", "%s did not report its device", ""}
	DeviceUnknown  = Reason{"device-unknown", "%s reported an unknown class of device (%q)", ""}
	LaunchesDiffer = Reason{"launches-differ", "launches of %s differ: %s", "launches differ"}

	WeightsUnverified = Reason{"weights-unverified", "weights of %s are not verified: only the model's name is known", ""}
	IsolationDiffers  = Reason{"isolation", "isolation differs: %s and %s", "isolation differs"}
	SoftwareGPU       = Reason{"webgpu-on-cpu",
		"WebGPU ran on the CPU (%s), so this is not a browser-versus-native comparison", ""}
	DevicesDiffer  = Reason{"device-class", "%s ran on %s, %s on %s", "devices differ"}
	ForeignUnknown = Reason{"foreign-rows", "model, prompt and device of %s are not known", ""}

	WeightsCompared = Reason{"weights", "weights: %s", ""}

	BothSoftware = Reason{"both-on-cpu", "WebGPU ran on the CPU on both sides: ratios say nothing about a GPU", ""}
	MemoryShared = Reason{"memory-shared", "memory is not compared: %s: %s", "memory is not compared: other programs share it"}
	CachesDiffer = Reason{"prompt-cache", "time to first token and prefill are not compared: prompt cache %s for %s, %s for %s",
		"time to first token and prefill are not compared: prompt caches differ"}
	LoadsDiffer = Reason{"load-per-request",
		"load time and time to first token are not compared: %s loads the model for each request", ""}
	TrafficCaveat = Reason{"one-at-a-time", "%s: %s", "requests were served one at a time"}
	PiecesDiffer  = Reason{"pieces-of-text", "times of tokens are not quite alike: %s reports pieces of text, the first of which " +
		"may hold several tokens", ""}
	DeviceNames     = Reason{"device-name", "device differs: %s and %s", "devices differ"}
	DeviceOrigin    = Reason{"device-origin", "the device of %s (%s) is %s", ""}
	SettingDiffers  = Reason{"setting", "%s differs: %s and %s", "%s differs"}
	LengthsDiffer   = Reason{"length", "lengths differ: %s and %s tokens", ""}
	BaselinesDiffer = Reason{"increase", "one memory increase is the whole peak; the other is measured from a baseline", ""}
)
