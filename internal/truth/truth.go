// Package truth measures which source of figures includes which kind of memory. It allocates memory of a known size,
// one kind after another, and reads every source before and after. The result is a matrix with a verdict for each cell,
// compared with the expectation for this platform.
//
// It can't say what a source sees of other memory, such as a driver's own, memory shared in another way, or sizes for
// which a program uses another allocator.
package truth

// Kind is a kind of memory.
type Kind struct {
	ID   string
	Name string
	gpu  bool // its location depends on the WebGPU adapter
}

// Row is a figure of a source.
type Row struct {
	ID     string // key in readings
	Who    string // page, renderer, process …
	Figure string // name of the figure
	// wants has the expected change for each kind; missing kinds: none; nil: unknown.
	wants map[string]Want
	where where
}

// where is the platforms that a row's wants apply to.
type where int

const (
	everywhere where = iota // figures of the browser
	onLinux                 // figures of the kernel; for WebGPU only on the CPU
)

// Table is a matrix without measurements.
type Table struct {
	Title string
	Kinds []Kind
	Rows  []Row
}

// Want is the expected change as a share of the size, before tolerances.
type Want struct {
	least, most float64
	exact       bool // to the byte
}

var (
	all   = Want{least: 1, most: 1}
	none  = Want{}
	exact = Want{least: 1, most: 1, exact: true}
)

func between(least, most float64) Want { return Want{least: least, most: most} }

// Platform is what expectations depend on.
type Platform struct {
	OS       string // runtime.GOOS; empty: the processes are on another machine
	Software bool   // WebGPU computes on the CPU
}

// want returns the expectation for a cell; false if there is none.
func (p Platform) want(r Row, k Kind) (Want, bool) {
	if r.wants == nil || r.where == onLinux && (p.OS != "linux" || k.gpu && !p.Software) {
		return Want{}, false
	}
	return r.wants[k.ID], true
}
