package record

// Processor is the processor in detail. On a virtual machine it is what the host shows of its own.
type Processor struct {
	Vendor    string `json:"vendor,omitempty"`
	Microcode string `json:"microcode,omitempty"`
	Sockets   int    `json:"sockets,omitempty"`
	Physical  int    `json:"physical_cores,omitempty"`
	Logical   int    `json:"logical_cores,omitempty"` // of the machine; Environment.Cores are those that we may run on
	SMT       string `json:"smt,omitempty"`           // on, off, not supported
	NUMANodes int    `json:"numa_nodes,omitempty"`
	// Frequencies in MHz: as it was when it was read (the highest of all cores), and the bounds.
	MHz    float64  `json:"mhz,omitempty"`
	MinMHz float64  `json:"min_mhz,omitempty"`
	MaxMHz float64  `json:"max_mhz,omitempty"`
	Driver string   `json:"frequency_driver,omitempty"`
	Turbo  string   `json:"turbo,omitempty"` // on, off
	Caches []Cache  `json:"caches,omitempty"`
	SIMD   []string `json:"simd,omitempty"` // those of its features that matter to a language model
}

// Cache is one kind of cache of the processor.
type Cache struct {
	Level     int    `json:"level"`
	Kind      string `json:"kind,omitempty"` // data, instruction, unified
	B         int64  `json:"bytes"`          // of one
	Instances int    `json:"instances,omitempty"`
}

// Memory is the machine's memory as it was before the run.
type Memory struct {
	AvailableB int64  `json:"available_bytes,omitempty"` // what can be had without swapping, as the system reckons
	SwapB      int64  `json:"swap_bytes"`
	SwapFreeB  int64  `json:"swap_free_bytes"`
	HugePages  string `json:"transparent_huge_pages,omitempty"` // always, madvise, never
	// Reclaimers take from processes what is idle, without anybody asking for memory.
	Reclaimers []Reclaimer `json:"reclaimers,omitempty"`
	// KSM is on: equal pages of programs that agree to it become one
	Merged bool `json:"same_pages_merged,omitempty"`
	Zswap  bool `json:"zswap,omitempty"` // what is swapped out may lie in memory, compressed
}

// Reclaimer is what in the kernel takes out of memory, by itself, what processes have not used for a while: their own
// memory goes to swap where there is any, pages of files are dropped. RSS and PSS fall then, and what is needed again
// must be read again.
type Reclaimer struct {
	By string `json:"by"` // DAMON or DAMONReclaim
	// it was set up, and only root may read what it does and whether it runs
	Hidden bool    `json:"hidden,omitempty"`
	Some   bool    `json:"of_some_processes,omitempty"` // and not of all
	IdleS  float64 `json:"idle_seconds,omitempty"`      // for so long nobody has used what is taken
	// the share of memory that is free under which it begins; absent: always
	FreeBelow float64 `json:"free_memory_below,omitempty"`
}

// What takes idle memory.
const (
	DAMON        = "DAMON"
	DAMONReclaim = "damon_reclaim"
)

// Limits are what the control group allows us, or one above it; absent where it says nothing.
type Limits struct {
	Version    string  `json:"cgroup"` // v1, v2
	CPUs       float64 `json:"cpu_quota_cores,omitempty"`
	MemoryB    int64   `json:"memory_bytes,omitempty"`
	MemoryUseB int64   `json:"memory_used_bytes,omitempty"` // of the group whose limit it is
	SwapB      *int64  `json:"swap_bytes,omitempty"`        // 0: none may be used
}

// Background is what others did on the machine in a short while before the run. Our own processes are left out.
type Background struct {
	Seconds float64       `json:"seconds"`
	Cores   float64       `json:"busy_cores"`             // of all others, and of the system itself
	Stolen  float64       `json:"stolen_cores,omitempty"` // by other guests of a virtual machine's host
	Busiest []BusyProcess `json:"busiest,omitempty"`
}

// BusyProcess is a program by its name alone; of one name all processes are together.
type BusyProcess struct {
	Name      string  `json:"name"`
	Processes int     `json:"processes"`
	Cores     float64 `json:"cores"`
}

// Temperature is the hottest of a chip's sensors.
type Temperature struct {
	Chip    string  `json:"chip"`
	Celsius float64 `json:"celsius"`
}

// MachineState is what a machine is like at a moment, by what changes there. What it does not tell is absent.
type MachineState struct {
	Load1      float64 `json:"load1"`
	FreeB      int64   `json:"free_bytes,omitempty"`      // memory that nobody uses for anything
	AvailableB int64   `json:"available_bytes,omitempty"` // what can be had without swapping, as the system reckons
	SwapUsedB  int64   `json:"swap_used_bytes,omitempty"`
	Governor   string  `json:"governor,omitempty"` // of the processors; several: with commas
	MHz        float64 `json:"mhz,omitempty"`      // the highest of all cores
	MaxMHz     float64 `json:"max_mhz,omitempty"`  // up to which they may go now
	// how often a core or package was slowed because of heat, since boot
	Throttled *int64 `json:"throttle_count,omitempty"`
	// of the last 10 s somebody waited for a processor (PSI)
	Pressure *float64 `json:"cpu_pressure_percent,omitempty"`
}

// Disk is where something lies.
type Disk struct {
	Role       string `json:"role"` // results, cache, temporary, shared-memory
	FreeB      int64  `json:"free_bytes"`
	TotalB     int64  `json:"total_bytes"`
	Filesystem string `json:"filesystem,omitempty"`
}
