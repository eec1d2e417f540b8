// Package record is the vocabulary of a measurement and its files on disk.
//
// A run is a plan carried out, and a folder. A cell is a point of the plan: one engine, one model, one request shape.
// An attempt is one launch of an engine for a cell: a repetition, or a warm-up launch that no statistic counts. Where a
// plan says so a repetition goes on in the session that an earlier attempt opened, and lacks the phases that come
// before. Within an attempt phases exclude one another and belong to the runner; prefill and decode are spans of a
// request, and load stages are spans of the load phase. A source is who was read (renderer, server …) and by what
// (statm, smaps_rollup …); a sample is one reading of one source.
//
// Times are time.Time values with their monotonic reading until they are written; on disk they are nanoseconds since
// the run's zero on that one monotonic clock (t_ns), beside a wall-clock timestamp for people. Sizes are bytes in
// memory and MiB in CSV columns that end in _mb; the values of metrics.csv are in the unit that their name ends in.
//
// What was not measured is Absent, never zero. The package stores and reads; it judges nothing.
//
// Open keeps a whole run in memory: a million samples with their totals take some 160 MB, and up to three times that
// while they are read. Files are read beside one another. A field that holds a line break, which CSV allows
// and Writer never writes, is not read.
package record

import "time"

// Schema identifies the layout of the run folder, as name/MAJOR or name/MAJOR.MINOR. A minor version only adds files,
// columns, fields and kinds of lines: readers take every minor version of their major one. 1.1 has lines of index,
// resumed and stop, which readers of 1 leave out; of cells that share a launch they tell nothing.
const Schema = "llmparity.run/1.1"

// Absent marks a figure that a source does not read.
const Absent int64 = -1

// MiB is what the column suffix _mb means.
const MiB = 1 << 20

// Meta is run.json: what the folder is and who wrote it.
type Meta struct {
	Schema  string    `json:"schema"`
	Name    string    `json:"name"` // the plan's name
	Started time.Time `json:"started"`
	Tool    Tool      `json:"tool"`
	Plan    string    `json:"plan_sha256,omitempty"` // of plan.yaml as it was written; absent: an older run's
	// Against is the folder, beside this one, of the run that this one is held against: their launches took turns.
	// Absent: it was made alone.
	Against string `json:"against,omitempty"`
	// DefaultEngines are those that came from a default list: that one of them can't run fails nothing.
	DefaultEngines []string `json:"default_engines,omitempty"`
}

// Tool names the program that wrote the record.
type Tool struct {
	Version string `json:"version"`
	SHA256  string `json:"sha256,omitempty"` // of the executable
	GoOS    string `json:"os"`
	GoArch  string `json:"arch"`
}

// Environment is environment.json: the machine as it was when the run started.
type Environment struct {
	OS        string  `json:"os"`
	Kernel    string  `json:"kernel"`
	CPU       string  `json:"cpu"`
	Cores     int     `json:"cores"`
	MemoryB   int64   `json:"memory_bytes"`
	Governor  string  `json:"governor,omitempty"`
	Load1     float64 `json:"load1"`
	Container bool    `json:"container,omitempty"`
	// those of which something can be told; the parts of a divided one are behind it
	GPUs []GPUInfo `json:"gpus,omitempty"`

	Arch          string        `json:"arch,omitempty"`
	Go            string        `json:"go,omitempty"`             // that built the program
	ContainerKind string        `json:"container_kind,omitempty"` // docker, podman, kubernetes, lxc, wsl …
	Virtual       string        `json:"virtual_machine,omitempty"`
	Display       string        `json:"display,omitempty"` // x11, wayland, none
	Load5         float64       `json:"load5,omitempty"`
	Load15        float64       `json:"load15,omitempty"`
	Processor     *Processor    `json:"processor,omitempty"`
	Memory        *Memory       `json:"memory,omitempty"`
	Limits        *Limits       `json:"limits,omitempty"`
	Background    *Background   `json:"background,omitempty"`
	Temperatures  []Temperature `json:"temperatures,omitempty"`
	Disks         []Disk        `json:"disks,omitempty"`
}

// GPUInfo is a graphics processor of the machine, or a part of a divided one.
type GPUInfo struct {
	Role    string `json:"role"`           // what its sources are called: gpu0, gpu0.mig1
	Part    string `json:"part,omitempty"` // which part of a divided one it is
	Name    string `json:"name"`
	Vendor  string `json:"vendor,omitempty"`
	Driver  string `json:"driver,omitempty"`
	ID      string `json:"id,omitempty"` // its own number, else its place on the bus
	MemoryB int64  `json:"memory_bytes,omitempty"`
	Method  string `json:"method"` // what it is read by
}

// Served is the format of a model that a server knows by its name: there is no file of it here, and nobody has verified
// its weights.
const Served = "served"

// Foreign is the format of a model of which nobody said anything: memory was written down by another program.
const Foreign = "foreign"

// Model is weights with an identity.
type Model struct {
	Name         string `json:"name"`
	SHA256       string `json:"sha256"`
	Format       string `json:"format"` // gguf, webllm, or Served
	Architecture string `json:"architecture"`
	DType        string `json:"dtype"` // of the weights
	Parameters   int64  `json:"parameters"`
	FileB        int64  `json:"file_bytes"`
	WeightsB     int64  `json:"weights_bytes"`
	Layers       int    `json:"layers"`
	Heads        int    `json:"heads"`
	KVHeads      int    `json:"kv_heads"`
	HeadDim      int    `json:"head_dim"`
	Hidden       int    `json:"hidden_size"`
	Vocab        int    `json:"vocab_size"`
	Context      int    `json:"context"`               // the window that the engines were given
	MaxContext   int    `json:"max_context,omitempty"` // the longest that it was made for; 0: not known
}

// Cell is a point of the plan.
type Cell struct {
	ID          int     `json:"id"`
	Engine      string  `json:"engine"`
	Model       Model   `json:"model"`
	PromptID    int     `json:"prompt_id"`
	Prompt      string  `json:"prompt"`
	MaxTokens   int     `json:"max_tokens"`
	Temperature float64 `json:"temperature"`
	Repetitions int     `json:"repetitions"`
	Isolation   string  `json:"isolation"`        // OfLaunch, OfTab, OfServer
	Reused      bool    `json:"reused,omitempty"` // repetitions go on in the session of the one before, with its model
	PromptCache string  `json:"prompt_cache"`     // CacheOff, CacheOn
	// What the engine can't do that others can.
	StopsAtEnd bool `json:"stops_at_end,omitempty"` // it can't go on behind the token that ends a text
	NoTokenIDs bool `json:"no_token_ids,omitempty"` // texts are what can be compared
	Pieces     bool `json:"pieces,omitempty"`       // it tells of pieces of text, and counts tokens itself
	// PerGeneration tells that it starts a process for each generation, which loads the model within its time.
	PerGeneration bool `json:"per_generation,omitempty"`
	// Setup numbers what cells of one engine have in common that must be settled when it is launched: model, context,
	// numbers, slots. From 1; 0: an older run's.
	Setup       int      `json:"setup,omitempty"`
	Shared      bool     `json:"shared,omitempty"`       // cells of one engine and setup go on in one launch
	InputTokens int      `json:"input_tokens,omitempty"` // asked for; 0: the prompt is a text that was given
	KVDType     string   `json:"kv_dtype,omitempty"`     // asked for; empty: the engine's own
	Start       string   `json:"start,omitempty"`        // ColdStart, WarmStart; empty: as the machine had it
	Traffic     *Traffic `json:"traffic,omitempty"`      // nil: one request
}

// What of a model's files lies in memory when a launch begins.
const (
	ColdStart = "cold" // nothing
	WarmStart = "warm" // all
)

// What becomes of a prompt's tokens from one request to the next. Where a cache can't be switched off, requests tell
// what they had of it.
const (
	CacheOff = "off"
	CacheOn  = "on"
)

// What a session has of its own, and so a repetition that opens one.
const (
	OfLaunch = "launch" // a fresh browser or server
	OfTab    = "tab"    // a tab in a browser that ran already
	OfServer = "server" // requests to a server that ran already, and goes on
)

// Phase is a stretch of an attempt; phases exclude one another.
type Phase string

// The phases in the order in which an attempt goes through them.
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

// Span is a named stretch of time: a load stage (fetch, shaders …), or a request's prefill or decode.
type Span struct {
	Name       string
	Begin, End time.Time
	How        string // how both ends were obtained, in a few words
}

// Names of spans that every engine reports for a request.
const (
	Prefill = "prefill"
	Decode  = "decode"
)

// NoID is the id of a token whose engine tells none.
const NoID = -1

// Token is one real token, counted where the engine samples it and never guessed from text chunks. An engine that only
// tells of pieces of text gives those, without ids, and Usage counts the tokens.
type Token struct {
	Index int // from 0
	ID    int // or NoID
	At    time.Time
}

// CacheUnknown is the number of prompt tokens from a cache where there may be one and the engine does not tell.
const CacheUnknown = -1

// Usage is what a request came to.
type Usage struct {
	PromptIDs    []int // as the engine tokenised the prompt
	PromptTokens int   // how many they are, where the engine counts them and tells no ids
	Generated    int   // how many tokens there were, where the engine counts them and told of pieces
	CachedTokens int   // prompt tokens taken from a cache; 0 when caches are off; CacheUntold where nobody tells
	Text         string
	Finish       string             // length, stop, cancelled
	Sent         time.Time          // when the request left us
	Returned     time.Time          // when its answer had ended, where that was not when Generate returned
	Spans        []Span             // prefill, decode
	Reported     map[string]float64 // the engine's own counts and timings, under its own names
}

// Methods of reading a process on Linux: the cheap one gives RSS, the expensive one PSS. Others have names of their
// own.
const (
	MethodStatm       = "statm"
	MethodSmapsRollup = "smaps_rollup"
	// of totals: a peak between two readings, by the kernel's mark of each process's highest RSS
	MethodPeakMark = "vm_hwm"
	MethodForeign  = "another_program" // which wrote it down, however it read it
)

// Source is who was read and by what.
type Source struct {
	Role   string `json:"role"`   // renderer, gpu-process, browser, utility, server …
	Method string `json:"method"` // MethodStatm, MethodSmapsRollup …
	PID    int    `json:"pid"`
	// Start is the process's start time in clock ticks since boot: a pid alone can be used again.
	Start uint64 `json:"start,omitempty"`
	// Every is the shortest sampling interval; sources of one method share it, and all are read at phase edges too. A
	// source without one is read at phase edges only.
	Every time.Duration `json:"every_ns"`
	// Waits tells that a read's time is mostly spent waiting for an answer: it says how old a figure may be, not what
	// it cost.
	Waits bool `json:"waits,omitempty"`
	// Kernel tells that the kernel answers at once: one thread reads all such sources.
	Kernel bool   `json:"-"`
	Sees   string `json:"sees"`  // what the figure includes
	Blind  string `json:"blind"` // what it can't see
}

// Sample is one reading of one source, in bytes; what the source does not read is Absent.
type Sample struct {
	Begin, End time.Time // the read's own begin and end
	RSS        int64
	VMS        int64
	PSS        int64
	USS        int64
	Swap       int64
	// the highest RSS since the last phase edge, or since the process started where that can't be reset
	HWM    int64
	Shared int64 // of RSS: files and shared memory, whoever else maps them; not in the record
	Forked int64 // anonymous pages that it shares with others, beyond its share in them; not in the record
	Kinds  Kinds // of PSS; recorded as Values at edges and for a phase's highest moment
	// Values are what else the source reads, each by its name.
	Values []Value
	// Edge is the phase that this reading ends: peaks in it are that phase's. Empty between phase edges.
	Edge Phase
}

// Kinds are the parts of a process's PSS in bytes. Anonymous is Absent where the kernel (before 5.9) does not tell
// them.
type Kinds struct{ Anonymous, Shared, Files int64 }

// Names of the parts of PSS, as values of readings.
const (
	PSSAnonymous = "pss_anonymous_bytes" // heaps, stacks, buffers, generated code
	PSSShared    = "pss_shared_bytes"    // memory that processes hand to each other
	PSSFiles     = "pss_files_bytes"     // pages of programs, libraries and data
)

// Values are the parts by name; none where they are not known.
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

// OfProcess tells whether the reading has figures of a process; only such readings are summed into totals.
func (s *Sample) OfProcess() bool {
	return s.RSS != Absent || s.VMS != Absent || s.PSS != Absent || s.USS != Absent || s.Swap != Absent ||
		s.HWM != Absent
}

// NewSample is a sample in which nothing was read yet.
func NewSample() Sample {
	return Sample{RSS: Absent, VMS: Absent, PSS: Absent, USS: Absent, Swap: Absent, HWM: Absent, Shared: Absent,
		Forked: Absent,
		Kinds:  Kinds{Anonymous: Absent}}
}

// Total is the sum over the processes of an engine at one tick of one method.
type Total struct {
	Sample
	Method    string
	Processes int
	Carried   Carried // zero where PSS was read
}

// Carried says of a total of PSS how much of it was read and between what it lies. The rest was carried forward from
// the last reading by the growth of the processes.
type Carried struct{ Read, Low, High int64 }

// Event is something that the engine learned or did; exactly one of the pointers is set, or Text alone is.
type Event struct {
	At     time.Time   `json:"-"`
	Text   string      `json:"text,omitempty"`
	Engine *EngineInfo `json:"engine,omitempty"`
	Device *Device     `json:"device,omitempty"`
	Clock  *Clock      `json:"clock,omitempty"`
	// Settling tells how the baseline was waited for.
	Settling *Settling `json:"settling,omitempty"`
}

// Settling is a wait for an engine's processes to hold still.
type Settling struct {
	Settled bool          `json:"settled"` // false: the time was up, or nothing could be read
	Waited  time.Duration `json:"waited_ns"`
	Window  time.Duration `json:"window_ns"`
	// of the sum of RSS over the last window; Absent where it was not read
	Spread    int64 `json:"spread_bytes"`
	Tolerance int64 `json:"tolerance_bytes"` // what the spread may be
}

// EngineInfo identifies what ran.
type EngineInfo struct {
	Name    string            `json:"name"`
	Version string            `json:"version"`
	Path    string            `json:"path,omitempty"`
	SHA256  string            `json:"sha256,omitempty"`
	Args    []string          `json:"args,omitempty"`   // without secrets
	Parts   map[string]string `json:"parts,omitempty"`  // browser, webllm, model_library, model_library_sha256 …
	Policy  map[string]string `json:"policy,omitempty"` // kv_dtype, weights_dtype, threads, context …
}

// Device says what the engine computes on.
type Device struct {
	Class  DeviceClass       `json:"class"`
	Name   string            `json:"name"`
	Detail map[string]string `json:"detail,omitempty"`
}

// DeviceClass decides what may be compared with what.
type DeviceClass string

// The classes. A software adapter is a GPU interface that computes on the CPU.
const (
	CPU             DeviceClass = "cpu"
	GPU             DeviceClass = "gpu"
	SoftwareAdapter DeviceClass = "software-adapter"
)

// Clock is the offset between an isolate's clock and ours, with its error bound.
type Clock struct {
	Isolate  string `json:"isolate"` // page
	When     string `json:"when"`    // start, end
	OffsetNS int64  `json:"offset_ns"`
	ErrorNS  int64  `json:"error_ns"` // half the shortest round trip
}

// Warning is something that a reader of the figures must know; every renderer shows it.
type Warning struct {
	Code string `json:"code"` // short, for machines: noisy-machine, clock-drift …
	Text string `json:"text"`
}

// Class says how an attempt failed.
type Class string

// The failure classes.
const (
	OOM        Class = "oom"
	DeviceLost Class = "device-lost"
	Crash      Class = "crash"
	Start      Class = "start"   // a browser or server was started several times, and died or did not answer each time
	Timeout    Class = "timeout" // the launch took longer than the plan gives it
	Hung       Class = "hung"    // nothing goes on any more, though nothing has ended
	Download   Class = "download"
	BadOutput  Class = "bad-output"
	SetUp      Class = "set-up" // a part is missing or the input is wrong
	BadModel   Class = "model"  // the engine can't load the model
	Cancelled  Class = "cancelled"
	Other      Class = "error"
)

// Status is how an attempt ended.
type Status string

// An attempt without an end in the journal is Interrupted: its rows are kept and never counted. Refused is one that was
// never launched; earlier versions have it as Failed.
const (
	OK          Status = "ok"
	Failed      Status = "failed"
	Interrupted Status = "interrupted"
	Refused     Status = "refused"
)

// Cost is what sampling an attempt took from the machine.
type Cost struct {
	Reads     int   `json:"reads"`
	ReadNS    int64 `json:"read_ns"`           // time spent inside reads
	Waits     int   `json:"waits,omitempty"`   // reads of sources that Wait; not in Reads
	WaitNS    int64 `json:"wait_ns,omitempty"` // time spent waiting for their answers; not in ReadNS
	SelfCPUNS int64 `json:"self_cpu_ns"`       // CPU time of the whole of llmparity meanwhile
}
