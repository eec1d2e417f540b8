package machine

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// cpuInfo is the content of /proc/cpuinfo, which differs between architectures.
type cpuInfo struct {
	model, vendor, microcode string
	board                    string   // name of the board, if present
	parts                    []string // names of ARM cores, if there is no model name
	logical                  int
	cores                    map[[2]string]bool // by socket and core
	mhz                      float64            // highest
	flags                    map[string]bool
}

// parseCPUInfo parses the file. The first value of a key counts, except for keys of each CPU.
func parseCPUInfo(text string) cpuInfo {
	c := cpuInfo{cores: map[[2]string]bool{}, flags: map[string]bool{}}
	var socket, implementer string
	for line := range strings.Lines(text) {
		key, value, ok := strings.Cut(line, ":")
		if key, value = strings.TrimSpace(key), strings.TrimSpace(value); !ok || value == "" {
			continue
		}
		switch key {
		case "processor":
			if _, err := strconv.Atoi(value); err == nil {
				c.logical++
			} else {
				c.model = cmp.Or(c.model, value) // on older ARM kernels
			}
		case "model name", "cpu model", "cpu", "Processor", "uarch":
			c.model = cmp.Or(c.model, value)
		case "vendor_id":
			c.vendor = cmp.Or(c.vendor, value)
		case "microcode":
			c.microcode = cmp.Or(c.microcode, value)
		case "Model", "machine":
			c.board = value
		case "Hardware": // name of the chip, which is less specific
			c.board = cmp.Or(c.board, value)
		case "physical id":
			socket = value
		case "core id":
			c.cores[[2]string{socket, value}] = true
		case "cpu MHz", "clock":
			if mhz, err := strconv.ParseFloat(strings.TrimSuffix(value, "MHz"), 64); err == nil && mhz > c.mhz &&
				mhz < 1e6 {
				c.mhz = mhz
			}
		case "CPU implementer":
			implementer = value
			c.vendor = cmp.Or(c.vendor, armMaker(value))
		case "CPU part":
			if name := armCore(implementer, value); !slices.Contains(c.parts, name) {
				c.parts = append(c.parts, name)
			}
		case "flags", "Features":
			for _, flag := range strings.Fields(value) {
				c.flags[flag] = true
			}
		}
	}
	return c
}

// name returns the model, or the names of the cores and the board; empty if unknown.
func (c cpuInfo) name() string {
	switch {
	// the model is only an architecture
	case len(c.parts) > 0 && (c.model == "" || strings.Contains(c.model, "Processor rev")):
		name := strings.Join(c.parts, " + ")
		if c.board != "" {
			name += " (" + c.board + ")"
		}
		return name
	case c.model != "":
		return c.model
	}
	return c.board
}

// simd lists the instruction sets that kernels of language models use, by their names in Linux, oldest first.
func simd() []string {
	return []string{"sse4_2", "avx", "f16c", "fma", "avx2", "avx_vnni", "avx512f", "avx512bw", "avx512vl",
		"avx512_vnni", "avx512_bf16",
		"avx512_fp16", "amx_tile", "amx_int8", "amx_bf16", "amx_fp16", "neon", "vfpv4", "asimd", "fphp", "asimdhp",
		"asimddp", "i8mm", "bf16",
		"sve", "sve2", "svei8mm", "svebf16", "sme", "sme2", "lsx", "lasx"}
}

func (c cpuInfo) simd() []string {
	return slices.DeleteFunc(simd(), func(name string) bool { return !c.flags[name] })
}

// armMaker returns the vendor of an ARM CPU.
func armMaker(implementer string) string {
	names := map[string]string{"0x41": "ARM", "0x42": "Broadcom", "0x43": "Cavium", "0x46": "Fujitsu",
		"0x48": "HiSilicon", "0x4e": "NVIDIA",
		"0x50": "Applied Micro", "0x51": "Qualcomm", "0x53": "Samsung", "0x56": "Marvell", "0x61": "Apple",
		"0x6d": "Microsoft",
		"0x70": "Phytium", "0xc0": "Ampere"}
	if name, ok := names[strings.ToLower(implementer)]; ok {
		return name
	}
	return "implementer " + implementer
}

// armCore returns the name of an ARM core.
func armCore(implementer, part string) string {
	names := map[string]string{
		"0x41 0xc07": "Cortex-A7", "0x41 0xc09": "Cortex-A9", "0x41 0xc0f": "Cortex-A15",
		"0x41 0xd03": "Cortex-A53", "0x41 0xd04": "Cortex-A35", "0x41 0xd05": "Cortex-A55", "0x41 0xd07": "Cortex-A57",
		"0x41 0xd08": "Cortex-A72", "0x41 0xd09": "Cortex-A73", "0x41 0xd0a": "Cortex-A75", "0x41 0xd0b": "Cortex-A76",
		"0x41 0xd0c": "Neoverse-N1", "0x41 0xd0d": "Cortex-A77", "0x41 0xd40": "Neoverse-V1",
		"0x41 0xd41": "Cortex-A78",
		"0x41 0xd44": "Cortex-X1", "0x41 0xd46": "Cortex-A510", "0x41 0xd47": "Cortex-A710", "0x41 0xd48": "Cortex-X2",
		"0x41 0xd49": "Neoverse-N2", "0x41 0xd4d": "Cortex-A715", "0x41 0xd4e": "Cortex-X3",
		"0x41 0xd4f": "Neoverse-V2",
		"0x41 0xd80": "Cortex-A520", "0x41 0xd81": "Cortex-A720", "0x41 0xd82": "Cortex-X4",
		"0x41 0xd83": "Neoverse-V3",
		"0x41 0xd84": "Neoverse-V3", "0x41 0xd8e": "Neoverse-N3", "0x46 0x001": "A64FX", "0x48 0xd01": "Kunpeng-920",
		"0x4e 0x004": "Carmel",
		"0x51 0x001": "Oryon", "0x61 0x022": "M1 Icestorm", "0x61 0x023": "M1 Firestorm", "0x61 0x032": "M2 Blizzard",
		"0x61 0x033": "M2 Avalanche", "0x6d 0xd49": "Cobalt 100", "0xc0 0xac3": "Ampere-1", "0xc0 0xac4": "Ampere-1a"}
	if name, ok := names[strings.ToLower(implementer+" "+part)]; ok {
		return name
	}
	return strings.TrimSpace(armMaker(implementer) + " part " + part)
}
