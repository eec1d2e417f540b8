// Package record is the vocabulary of a measurement and its files on disk.
//
// A run is one execution of a plan, and its folder. A cell is one point of the plan: engine, model and request shape.
// An attempt is one try at a launch of a cell: a repetition, or a warm-up that no statistic counts. With reused
// isolation, a repetition continues in the session that an earlier attempt opened and lacks the earlier phases. Phases
// of an attempt don't overlap. Load stages are spans of the load phase; prefill and decode are spans of a request. A
// source is a process or device and the method that reads it; a sample is one reading of one source.
//
// In memory, times are time.Time values with a monotonic reading. On disk they are nanoseconds since the start of the
// run on that clock (t_ns), beside a wall-clock timestamp. Sizes are bytes, and MiB in CSV columns that end in _mb. The
// names in metrics.csv end in the unit of their values.
//
// What was not measured is Absent, never zero. The package stores and reads; it judges nothing.
//
// Open keeps a whole run in memory: a million samples take about 200 MB, and three times that while they are read.
// It can't read CSV fields that contain line breaks, which Writer never writes.
package record

import (
	"cmp"
	"fmt"
	"llmparity/internal/record/ran"
	"slices"
	"strings"
	"time"
)

// Schema identifies the layout of the run folder: name/MAJOR.MINOR. A minor version only adds files, columns, fields
// and kinds of lines, so readers accept every minor version of their major version.
const Schema = "llmparity.run/2.0"

// Absent marks a figure that a source does not read.
const Absent int64 = -1

// MiB is the unit of columns that end in _mb, in bytes.
const MiB = 1 << 20

// Meta is run.json: what the folder is and who wrote it.
type Meta struct {
	Schema  string    `json:"schema"`
	Name    string    `json:"name"`                  // name of the plan
	Started time.Time `json:"started"`               // when the run started; t_ns counts from here
	Tool    Tool      `json:"tool"`                  // program that wrote the record
	Plan    string    `json:"plan_sha256,omitempty"` // SHA-256 of plan.yaml
	// Against is the folder of the run that this one was interleaved with, beside this folder. Absent: none.
	Against string `json:"against,omitempty"`
	// Side is which side of an interleaved run the folder has. Absent: the run has one side.
	Side *Side `json:"side,omitempty"`
	// DefaultEngines came from a default list: if one can't run, the run still succeeds.
	DefaultEngines []string `json:"default_engines,omitempty"`
	// Engines are the builds that ran, written when the run ends. Absent: none reported a version, or it was killed.
	Engines []Build `json:"engines,omitempty"`
	// Reference has the values of the reference cell that the plan names, by axis.
	Reference map[string]string `json:"reference_cell,omitempty"`
}

// Side is a side of a run whose launches alternate with those of other sides.
type Side struct {
	Role Role `json:"role"` // "baseline", "run", or "noise": the baseline once more
	// Differs has the requested values that the other side does not have, by field or flag. Of paths it has the ends
	// that differ.
	Differs map[string]string `json:"differs,omitempty"`
}

// Role is what a side is measured for.
type Role string

// The roles of sides.
const (
	BaselineSide Role = "baseline"
	RunSide      Role = "run"
	NoiseSide    Role = "noise"
)

// Tool names the program that wrote the record.
type Tool struct {
	Version string `json:"version"`
	SHA256  string `json:"sha256,omitempty"` // SHA-256 of the executable
	// Commit is the commit that it was built from; absent: the build does not state one. Modified: with changes.
	Commit   string `json:"commit,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	GoOS     string `json:"os"`   // operating system, as Go names it
	GoArch   string `json:"arch"` // processor architecture, as Go names it
}

// Environment is environment.json: the machine when the run started.
type Environment struct {
	OS        string    `json:"os"`                  // operating system and its version
	Kernel    string    `json:"kernel"`              // kernel version
	CPU       string    `json:"cpu"`                 // processor model
	Cores     int       `json:"cores"`               // logical CPUs available to this process
	MemoryB   int64     `json:"memory_bytes"`        // physical memory, in bytes
	Governor  string    `json:"governor,omitempty"`  // CPU frequency governor
	Load1     float64   `json:"load1"`               // load average over 1 minute
	Container bool      `json:"container,omitempty"` // runs in a container
	GPUs      []GPUInfo `json:"gpus,omitempty"`      // GPUs, each followed by its partitions

	Arch          string        `json:"arch,omitempty"`            // processor architecture
	Go            string        `json:"go,omitempty"`              // Go version that built the program
	ContainerKind string        `json:"container_kind,omitempty"`  // docker, podman, kubernetes, lxc, wsl …
	Virtual       string        `json:"virtual_machine,omitempty"` // hypervisor, if any
	Display       string        `json:"display,omitempty"`         // x11, wayland, none
	Load5         float64       `json:"load5,omitempty"`           // load average over 5 minutes
	Load15        float64       `json:"load15,omitempty"`          // load average over 15 minutes
	Processor     *Processor    `json:"processor,omitempty"`
	Memory        *Memory       `json:"memory,omitempty"`
	Limits        *Limits       `json:"limits,omitempty"`
	Background    *Background   `json:"background,omitempty"`
	Temperatures  []Temperature `json:"temperatures,omitempty"` // the hottest sensor of each chip
	Disks         []Disk        `json:"disks,omitempty"`
}

// GPUInfo is a GPU, or a partition of one.
type GPUInfo struct {
	Role    string `json:"role"`                   // name of its sources: gpu0, gpu0.mig1
	Part    string `json:"part,omitempty"`         // partition, such as a MIG profile
	Name    string `json:"name"`                   // product name
	Vendor  string `json:"vendor,omitempty"`       // vendor
	Driver  string `json:"driver,omitempty"`       // driver and its version
	ID      string `json:"id,omitempty"`           // UUID, or bus address
	MemoryB int64  `json:"memory_bytes,omitempty"` // memory, in bytes
	Method  string `json:"method"`                 // how it is read: nvml, drm …
}

// Served is the format of a model that a server knows by name: there is no local file, and its weights are not
// verified.
const Served = "served"

// Foreign is the format of the unknown model of a record that another program wrote.
const Foreign = "foreign"

// Model identifies weights and describes their shape.
type Model struct {
	Name string `json:"name"`
	// the name that people know it by, if that is another; never compared, so that older runs can be resumed
	Title string `json:"title,omitempty"`
	// as the plan names it, a file or a folder; never compared, because a file may move
	File string `json:"file,omitempty"`
	// what the engine ran, if the plan names a form of the model for each engine; name is then the plan's
	Form         string `json:"form,omitempty"`
	SHA256       string `json:"sha256"`       // SHA-256 of the weights
	Format       string `json:"format"`       // gguf, webllm, served or foreign
	Architecture string `json:"architecture"` // llama, qwen2 …
	DType        string `json:"dtype"`        // dtype of the weights
	// what the weights were converted from, if that was quantised and their values show it
	MadeFrom   string `json:"made_from,omitempty"`
	Parameters int64  `json:"parameters"`            // number of parameters
	FileB      int64  `json:"file_bytes"`            // size of the file or package, in bytes
	WeightsB   int64  `json:"weights_bytes"`         // size of the weights in it, in bytes
	Layers     int    `json:"layers"`                // number of layers
	Heads      int    `json:"heads"`                 // attention heads
	KVHeads    int    `json:"kv_heads"`              // key-value heads
	HeadDim    int    `json:"head_dim"`              // size of a head
	Hidden     int    `json:"hidden_size"`           // size of the hidden state
	Vocab      int    `json:"vocab_size"`            // size of the vocabulary
	Context    int    `json:"context"`               // context window in tokens, as the engines are started
	MaxContext int    `json:"max_context,omitempty"` // the model's maximum context window, in tokens; absent: unknown
	// SHA-256 of the first form of the model that has the same weights in another file, compared value by value
	SameAs string `json:"same_as,omitempty"`
	// how the weights differ from those of the model's first form, or why they are not compared; absent: they don't
	Differs Relation `json:"differs,omitzero"`
}

// Values identifies the values of the weights, as far as files are compared; empty if the file is unknown.
func (m Model) Values() string { return cmp.Or(m.SameAs, m.SHA256) }

// Random reports whether the weights are random numbers, as those of the built-in model are.
func (m Model) Random() bool {
	return strings.HasPrefix(m.Name, "tiny-llama-2x") || strings.HasPrefix(m.Name, "random-")
}

// Cell is a point of the plan.
type Cell struct {
	ID            int      `json:"id"`                       // number of the cell, from 1
	Engine        string   `json:"engine"`                   // name of the engine
	Model         Model    `json:"model"`                    //
	PromptID      int      `json:"prompt_id"`                // number of the prompt
	Prompt        string   `json:"prompt"`                   // text of the prompt
	MaxTokens     int      `json:"max_tokens"`               // most tokens to generate
	Temperature   float64  `json:"temperature"`              // sampling temperature
	Repetitions   int      `json:"repetitions"`              // planned repetitions
	Isolation     string   `json:"isolation"`                // what each session starts: launch, tab or server
	Reused        bool     `json:"reused,omitempty"`         // repetitions share one session with its loaded model
	PromptCache   string   `json:"prompt_cache"`             // off or on
	StopsAtEnd    bool     `json:"stops_at_end,omitempty"`   // the engine can't continue after the end of a text
	NoTokenIDs    bool     `json:"no_token_ids,omitempty"`   // the engine reports no token ids
	Pieces        bool     `json:"pieces,omitempty"`         // the engine reports pieces of text
	PerGeneration bool     `json:"per_generation,omitempty"` // each generation starts a process that loads the model
	Setup         int      `json:"setup,omitempty"`          // number of the start settings, from 1
	Shared        bool     `json:"shared,omitempty"`         // cells with the same setup share a launch
	InputTokens   int      `json:"input_tokens,omitempty"`   // requested prompt length in tokens; absent: a given text
	KVDType       string   `json:"kv_dtype,omitempty"`       // requested KV cache dtype; absent: the engine's default
	Start         string   `json:"start,omitempty"`          // page cache before a launch: cold, warm
	Weights       string   `json:"weights,omitempty"`        // requested form of the weights; absent: the engine's default
	Traffic       *Traffic `json:"traffic,omitempty"`        // absent: one request
	Chat          bool     `json:"chat,omitempty"`           // prompts are in the model's chat template
	DType         string   `json:"dtype,omitempty"`          // requested dtype; absent: the engine's default
	Threads       int      `json:"threads,omitempty"`        // requested threads; absent: the engine's default
	Storage       string   `json:"storage,omitempty"`        // where a browser keeps the model; absent: the engine's default
	Stored        string   `json:"stored,omitempty"`         // state of that before a launch; absent: empty
	// what the plan varied of the engine's own: its version and fields of its section, with their values
	Settings map[string]string `json:"settings,omitempty"`
}

// Values of Cell.Start: which pages of the model's files are in memory when a launch begins.
const (
	ColdStart = "cold" // none
	WarmStart = "warm" // all
)

// Values of Cell.Storage: where an engine in a browser keeps the files of its model.
const (
	CacheAPI    = "cache"
	IndexedDB   = "indexeddb"
	OPFS        = "opfs"         // the origin's private file system
	CrossOrigin = "cross-origin" // an extension's, for all sites
	NoStorage   = "none"
)

// Values of Cell.Stored: which of these files are there when a launch begins.
const (
	StoredEmpty  = "empty"
	StoredHalf   = "half" // the first half of them, as after an interrupted download
	StoredFilled = "filled"
)

// Values of Cell.PromptCache: whether requests reuse the tokens of earlier prompts. If an engine can't switch its cache
// off, Usage.CachedTokens has what a request reused.
const (
	CacheOff = "off"
	CacheOn  = "on"
)

// Values of Cell.Isolation: what a session starts afresh.
const (
	OfLaunch = "launch" // a browser or server
	OfTab    = "tab"    // a tab in a running browser
	OfServer = "server" // requests to a server that was running before and keeps running
)

// Phase is a part of an attempt; phases don't overlap.
type Phase string

// The phases in the order of an attempt.
const (
	Baseline Phase = "baseline" // the engine is open, no model is loaded
	Load     Phase = "load"
	Warmup   Phase = "warmup"
	Measure  Phase = "measure"
	Idle     Phase = "idle"
	Unload   Phase = "unload"
)

// Phases lists every phase in order.
func Phases() []Phase { return []Phase{Baseline, Load, Warmup, Measure, Idle, Unload} }

// Span is a named interval: a load stage (fetch, shaders …), or a request's prefill or decode.
type Span struct {
	Name       string
	Begin, End time.Time
	How        string // how both ends were obtained
}

// Names of spans that every engine reports for a request.
const (
	Prefill = "prefill"
	Decode  = "decode"
)

// BlockIn is the name of the span for which the main thread of an engine's page was blocked longest in another span.
func BlockIn(span string) string { return "longest block in " + span }

// NoID is the id of a token whose engine reports none.
const NoID = -1

// Token is one token, counted where the engine samples it and never guessed from text chunks. An engine that reports
// only pieces of text returns those, without ids; Usage then has the number of tokens.
type Token struct {
	Index int // from 0
	ID    int // or NoID
	At    time.Time
}

// CacheUnknown is the value of CachedTokens if the engine may have a cache and does not report what it used.
const CacheUnknown = -1

// Usage is the outcome of a request.
type Usage struct {
	PromptIDs    []int // as the engine tokenised the prompt
	PromptTokens int   // number of prompt tokens, if the engine reports no ids
	Generated    int   // number of generated tokens, if the engine reports pieces
	CachedTokens int   // prompt tokens from a cache; 0 if caches are off; CacheUnknown
	Text         string
	Finish       string             // length, stop, cancelled
	Sent         time.Time          // when the request was sent
	Returned     time.Time          // when its answer ended, if that was before Generate returned
	Spans        []Span             // prefill, decode
	Reported     map[string]float64 // the engine's own counts and timings, under its own names
}

// Methods that read a process. On Linux statm is cheap and has RSS, and smaps_rollup is expensive and has PSS.
const (
	MethodStatm       = "statm"
	MethodSmapsRollup = "smaps_rollup"
	MethodPeakMark    = "vm_hwm"          // for totals: a peak between two readings, from each process's highest RSS
	MethodForeign     = "another_program" // from a file that another program wrote
	MethodCPUTime     = "cpu_time"        // the CPU time of a process, at the edges of phases and requests
)

// Values of MethodCPUTime, since the process started.
const (
	CPUTime         = "cpu_ms"          // of all its threads, those that have ended too
	CPUTimeChildren = "children_cpu_ms" // of its children that have ended and that it has waited for
)

// Source is a process or device and the method that reads it.
type Source struct {
	Role   string `json:"role"`   // renderer, gpu-process, browser, utility, server …
	Method string `json:"method"` // statm, smaps_rollup …
	PID    int    `json:"pid"`    // process id
	// Start is the start time of the process in clock ticks since boot, because pids are reused.
	Start uint64 `json:"start,omitempty"`
	// Every is the shortest sampling interval in nanoseconds. Sources with the same method share it. All sources are
	// also read at phase edges; 0: only there.
	Every time.Duration `json:"every_ns"`
	// Waits says that a read mostly waits for an answer: its duration is the age of the figure and not its cost.
	Waits bool `json:"waits,omitempty"`
	// Kernel says that the kernel answers at once: one thread reads all such sources.
	Kernel bool   `json:"-"`
	Sees   string `json:"sees"`  // what the figure includes
	Blind  string `json:"blind"` // what it does not include
}

// Describe returns the source, for a sample.Source that embeds it.
func (s Source) Describe() Source { return s }

// Sample is one reading of one source, in bytes; what the source does not read is Absent.
type Sample struct {
	Begin, End time.Time // of the read
	RSS        int64
	VMS        int64
	PSS        int64
	USS        int64
	Swap       int64
	HWM        int64   // highest RSS since the last phase edge, or since the process started if it can't be reset
	Shared     int64   // files and shared memory in RSS; not recorded
	Forked     int64   // anonymous pages shared with other processes, beyond its share of them; not recorded
	Kinds      Kinds   // components of PSS; recorded as Values at edges and for the highest moment of a phase
	Values     []Value // other figures of the source
	Edge       Phase   // the phase that this reading ends, and that its peaks belong to; else empty
}

// Kinds are the components of a process's PSS in bytes. Anonymous is Absent before Linux 5.9, which lacks them.
type Kinds struct{ Anonymous, Shared, Files int64 }

// Names of the components of PSS.
const (
	PSSAnonymous = "pss_anonymous_bytes" // heaps, stacks, buffers, generated code
	PSSShared    = "pss_shared_bytes"    // shared memory
	PSSFiles     = "pss_files_bytes"     // pages of programs, libraries and data
)

// Values returns the components by name; none if they are unknown.
func (k Kinds) Values() []Value {
	if k.Anonymous == Absent {
		return nil
	}
	return []Value{{PSSAnonymous, float64(k.Anonymous)}, {PSSShared, float64(k.Shared)}, {PSSFiles, float64(k.Files)}}
}

// Value is a named figure of a reading. The name ends in its unit: _bytes, _count, _ms.
type Value struct {
	Name  string
	Value float64
}

// OfProcess reports whether the reading has figures of a process. Only those are summed into totals.
func (s *Sample) OfProcess() bool {
	return s.RSS != Absent || s.VMS != Absent || s.PSS != Absent || s.USS != Absent || s.Swap != Absent ||
		s.HWM != Absent
}

// NewSample returns a sample in which everything is Absent.
func NewSample() Sample {
	return Sample{RSS: Absent, VMS: Absent, PSS: Absent, USS: Absent, Swap: Absent, HWM: Absent, Shared: Absent,
		Forked: Absent, Kinds: Kinds{Anonymous: Absent}}
}

// Total is the sum over the processes of an engine at one tick of one method.
type Total struct {
	Sample
	Method    string
	Processes int
	Carried   Carried // zero if PSS was read
}

// Carried describes a total PSS of which only part was read: that part, and the bounds of the total. The rest is
// carried forward from the last reading by the growth of the processes.
type Carried struct{ Read, Low, High int64 }

// Event is something that the engine reported or did: exactly one of the fields but At is set.
type Event struct {
	At       time.Time   `json:"-"`
	Text     string      `json:"text,omitempty"`     // what happened
	Engine   *EngineInfo `json:"engine,omitempty"`   // what ran
	Device   *Device     `json:"device,omitempty"`   // what the engine computes on
	Clock    *Clock      `json:"clock,omitempty"`    // offset of another clock
	Settling *Settling   `json:"settling,omitempty"` // the wait for a steady baseline
	Ran      []ran.Row   `json:"ran,omitempty"`      // what was asked for, and what ran
	Store    *Store      `json:"store,omitempty"`    // what a browser keeps of the model
}

// Store is what a browser keeps of a model once that is loaded.
type Store struct {
	In       string `json:"in"`                     // cache, indexeddb, opfs or none, as it was found
	Files    int    `json:"files"`                  // number of files
	Disk     int64  `json:"disk_bytes"`             // size of the folders in the profile; -1: unknown
	Reported int64  `json:"reported_bytes"`         // what the browser reports to the page
	Quota    int64  `json:"quota_bytes"`            // what it says to grant; Chrome: always 10 GiB more than are used
	Before   int    `json:"files_before,omitempty"` // number of files before the load
}

// Settling is the wait for an engine's memory to become steady.
type Settling struct {
	Settled   bool          `json:"settled"`         // false: time limit reached, or nothing could be read
	Waited    time.Duration `json:"waited_ns"`       // duration of the wait, in nanoseconds
	Window    time.Duration `json:"window_ns"`       // length of the window that must be steady, in nanoseconds
	Spread    int64         `json:"spread_bytes"`    // range of total RSS in the last window; -1: not read
	Tolerance int64         `json:"tolerance_bytes"` // largest spread of a steady window
}

// BuiltIn is the Origin of an engine that is part of llmparity.
const BuiltIn = "built in"

// BundlePart is the part of an engine that has the hash of a browser engine's module.
const BundlePart = "bundle_sha256"

// OfFile begins the Origin of an engine that is a file; its name follows.
const OfFile = "file "

// Values of Library.Maker and Library.Kernels.
const (
	Llmparity  = "llmparity"
	MLCKernels = "mlc"
)

// Device is what the engine computes on.
type Device struct {
	Class  DeviceClass       `json:"class"`            // cpu, gpu, software-adapter, virtual-gpu or opengl-adapter
	Name   string            `json:"name"`             // product name
	Detail map[string]string `json:"detail,omitempty"` // what else the engine reports about it
	// Origin says who says so: stated (the plan) or derived (from processes). Absent: the engine.
	Origin string `json:"origin,omitempty"`
	// Asked is the device that the plan asked for: a class, or the name of an adapter. Absent: none in particular.
	Asked string `json:"asked,omitempty"`
}

// Values of Device.Origin.
const (
	DeviceStated  = "stated"
	DeviceDerived = "derived"
)

// Title is the class and the name, and who says so if it is not the engine.
func (d Device) Title() string {
	title := strings.TrimSpace(string(d.Class) + " " + d.Name)
	if d.Origin != "" {
		title += " (" + d.Origin + ")"
	}
	return title
}

// Missed reports whether another device was asked for. That of an unknown class may be the one.
func (d Device) Missed() bool {
	known := slices.Contains(DeviceClasses, d.Class)
	return d.Asked != "" && known && d.Asked != string(d.Class) && d.Asked != d.Detail["architecture"]
}

// SoftwareGPU reports whether a GPU with this name is a program that computes on the CPU.
func SoftwareGPU(name string) bool {
	known := []string{"swiftshader", "llvmpipe", "lavapipe", "basic render", "warp"}
	return slices.ContainsFunc(known, func(s string) bool { return strings.Contains(strings.ToLower(name), s) })
}

// DeviceClass decides which results may be compared.
type DeviceClass string

// The classes. A software adapter is a GPU interface that computes on the CPU. A virtual GPU passes its work on to a
// device that it does not tell. An OpenGL adapter is WebGPU on OpenGL, which can be a hundredth as fast as on Vulkan.
const (
	CPU             DeviceClass = "cpu"
	GPU             DeviceClass = "gpu"
	SoftwareAdapter DeviceClass = "software-adapter"
	VirtualGPU      DeviceClass = "virtual-gpu"
	OpenGLAdapter   DeviceClass = "opengl-adapter"
)

// DeviceClasses are the classes; any other is unknown.
var DeviceClasses = []DeviceClass{CPU, GPU, SoftwareAdapter, VirtualGPU, OpenGLAdapter}

// VirtualName reports whether a GPU with this name is a virtual machine's.
func VirtualName(name string) bool {
	known := []string{"virtio", "venus", "virgl", "gfxstream", "svga3d", "vmware", "parallels", "paravirtual"}
	return slices.ContainsFunc(known, func(s string) bool { return strings.Contains(strings.ToLower(name), s) })
}

// Clock is the offset between another clock, such as the page's, and ours.
type Clock struct {
	Isolate  string `json:"isolate"`   // whose clock: page
	When     string `json:"when"`      // measured at the start or at the end
	OffsetNS int64  `json:"offset_ns"` // offset, in nanoseconds
	ErrorNS  int64  `json:"error_ns"`  // error bound: half the shortest round trip, in nanoseconds
}

// ProgramShared is the code of a warning about a program that also runs outside the launch.
const ProgramShared = "program-shared"

// Warning is something that a reader of the figures must know; every renderer shows it.
type Warning struct {
	Code string `json:"code"` // short, for machines: noisy-machine, clock-drift …
	Text string `json:"text"`
}

// Warnf returns a warning with a formatted text.
func Warnf(code, format string, a ...any) Warning { return Warning{code, fmt.Sprintf(format, a...)} }

// Origin says how a figure was obtained.
type Origin string

// The origins. Differences and rates of measured figures are measured, too.
const (
	OriginMeasured   Origin = "measured"   // by a sampler or a clock
	OriginReported   Origin = "reported"   // by the engine or its server
	OriginCalculated Origin = "calculated" // from the model's shape, or from figures of several origins
	OriginFileSize   Origin = "file size"
	OriginPredicted  Origin = "predicted" // before the first launch
)

// Class says how an attempt failed.
type Class string

// The failure classes.
const (
	OOM        Class = "oom"
	DeviceLost Class = "device-lost"
	Crash      Class = "crash"
	Start      Class = "start"   // a browser or server did not start, in several tries
	Timeout    Class = "timeout" // the launch exceeded the plan's time limit
	Hung       Class = "hung"    // no progress
	Download   Class = "download"
	BadOutput  Class = "bad-output"
	SetUp      Class = "set-up"   // a part is missing, or the input is invalid
	Quota      Class = "quota"    // the browser refuses to store the model
	Fallback   Class = "fallback" // the engine ran on another device than the plan asks for, or with less
	BadModel   Class = "model"    // the engine can't load the model
	Cancelled  Class = "cancelled"
	Other      Class = "error"
)

// Status is how an attempt ended.
type Status string

// The statuses. An attempt without an end in the journal is Interrupted: its rows are kept and never counted. A Refused
// one was never launched.
const (
	OK          Status = "ok"
	Failed      Status = "failed"
	Interrupted Status = "interrupted"
	Refused     Status = "refused"
)

// Cost is what sampling an attempt took from the machine.
type Cost struct {
	Reads     int   `json:"reads"`                 // number of reads, without those that wait
	ReadNS    int64 `json:"read_ns"`               // time inside those reads, in nanoseconds
	ReadCPUNS int64 `json:"read_cpu_ns,omitempty"` // CPU time of those reads: less, if they wait for a processor
	Waits     int   `json:"waits,omitempty"`       // number of reads that mostly wait for an answer
	WaitNS    int64 `json:"wait_ns,omitempty"`     // time inside those reads, in nanoseconds
	SelfCPUNS int64 `json:"self_cpu_ns"`           // CPU time of llmparity during the attempt, in nanoseconds
}
