package record

// Processor describes the processor; on a virtual machine, as the host presents it.
type Processor struct {
	Vendor    string   `json:"vendor,omitempty"`
	Microcode string   `json:"microcode,omitempty"`
	Sockets   int      `json:"sockets,omitempty"`
	Physical  int      `json:"physical_cores,omitempty"`
	Logical   int      `json:"logical_cores,omitempty"` // of the machine, including those that this process may not use
	SMT       string   `json:"smt,omitempty"`           // simultaneous multithreading: on, off, not supported
	NUMANodes int      `json:"numa_nodes,omitempty"`
	MHz       float64  `json:"mhz,omitempty"`              // current frequency of the fastest core
	MinMHz    float64  `json:"min_mhz,omitempty"`          // lowest frequency
	MaxMHz    float64  `json:"max_mhz,omitempty"`          // highest frequency
	Driver    string   `json:"frequency_driver,omitempty"` // driver that sets the frequency
	Turbo     string   `json:"turbo,omitempty"`            // on, off
	Caches    []Cache  `json:"caches,omitempty"`
	SIMD      []string `json:"simd,omitempty"` // instruction sets that matter to language models
}

// Cache is one kind of processor cache.
type Cache struct {
	Level     int    `json:"level"`
	Kind      string `json:"kind,omitempty"`      // data, instruction, unified
	B         int64  `json:"bytes"`               // size of one, in bytes
	Instances int    `json:"instances,omitempty"` // number of such caches
}

// Memory is the machine's memory before the run.
type Memory struct {
	AvailableB int64       `json:"available_bytes,omitempty"`        // estimate, available without swapping
	SwapB      int64       `json:"swap_bytes"`                       // swap space
	SwapFreeB  int64       `json:"swap_free_bytes"`                  // unused swap space
	HugePages  string      `json:"transparent_huge_pages,omitempty"` // always, madvise, never
	Reclaimers []Reclaimer `json:"reclaimers,omitempty"`
	Merged     bool        `json:"same_pages_merged,omitempty"` // KSM is on: programs may share identical pages
	Zswap      bool        `json:"zswap,omitempty"`             // swapped pages may stay in memory, compressed
}

// Reclaimer is a part of the kernel that evicts idle memory of processes even if memory is not short. RSS and PSS then
// fall, and the memory must be read again when it is needed.
type Reclaimer struct {
	By        string  `json:"by"`                          // DAMON or damon_reclaim
	Hidden    bool    `json:"hidden,omitempty"`            // only root can read its settings and whether it runs
	Some      bool    `json:"of_some_processes,omitempty"` // it acts on some processes only
	IdleS     float64 `json:"idle_seconds,omitempty"`      // it evicts memory that was not used for so many seconds
	FreeBelow float64 `json:"free_memory_below,omitempty"` // it starts below this share of free memory
}

// Values of Reclaimer.By.
const (
	DAMON        = "DAMON"
	DAMONReclaim = "damon_reclaim"
)

// Limits are the limits of our control group or one above it; absent where there is none.
type Limits struct {
	Version    string  `json:"cgroup"`                      // v1, v2
	CPUs       float64 `json:"cpu_quota_cores,omitempty"`   // CPU quota, in cores
	MemoryB    int64   `json:"memory_bytes,omitempty"`      // memory limit
	MemoryUseB int64   `json:"memory_used_bytes,omitempty"` // memory in use by the group with that limit
	SwapB      *int64  `json:"swap_bytes,omitempty"`        // swap limit; 0: no swap
}

// Background is the load from other processes just before the run.
type Background struct {
	Seconds float64       `json:"seconds"`                // how long it was observed
	Cores   float64       `json:"busy_cores"`             // average cores in use
	Stolen  float64       `json:"stolen_cores,omitempty"` // cores that a hypervisor gave to others
	Busiest []BusyProcess `json:"busiest,omitempty"`
}

// BusyProcess is all processes with the same name.
type BusyProcess struct {
	Name      string  `json:"name"`
	Processes int     `json:"processes"` // number of processes
	Cores     float64 `json:"cores"`     // average cores in use
}

// Temperature is the hottest sensor of a chip.
type Temperature struct {
	Chip    string  `json:"chip"`
	Celsius float64 `json:"celsius"`
}

// MachineState is the state of the machine at one moment; what it does not report is absent.
type MachineState struct {
	Load1      float64  `json:"load1"`                          // load average over 1 minute
	FreeB      int64    `json:"free_bytes,omitempty"`           // unused memory
	AvailableB int64    `json:"available_bytes,omitempty"`      // estimate of what is available without swapping
	SwapUsedB  int64    `json:"swap_used_bytes,omitempty"`      // swap space in use
	Governor   string   `json:"governor,omitempty"`             // frequency governors, separated by commas
	MHz        float64  `json:"mhz,omitempty"`                  // frequency of the fastest core
	MaxMHz     float64  `json:"max_mhz,omitempty"`              // current limit of the frequency
	Throttled  *int64   `json:"throttle_count,omitempty"`       // thermal throttling events since boot
	Pressure   *float64 `json:"cpu_pressure_percent,omitempty"` // tasks waited for a CPU, over 10 s (PSI)
}

// Disk is the file system of a folder that is used.
type Disk struct {
	Role       string `json:"role"`                 // results, cache, temporary, shared-memory
	FreeB      int64  `json:"free_bytes"`           // free space
	TotalB     int64  `json:"total_bytes"`          // size of the file system
	Filesystem string `json:"filesystem,omitempty"` // ext4, tmpfs …
}
