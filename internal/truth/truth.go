// Package truth finds out which source of memory sees which kind of it: memory of a known size is taken, one kind after
// the other, and every source is read before and after. What came of it is a matrix with a verdict a cell, beside what
// is expected of this platform.
//
// It measures sources, not programs. What it can't say is what a source sees of memory that nobody took here: of a
// driver's own, of memory that is shared in another way, or of sizes at which a program changes its mind about where
// memory comes from.
package truth

// Kind is a kind of memory, and how it is taken.
type Kind struct {
	ID   string
	Name string
	gpu  bool // where it lies hangs on what WebGPU computes on
}

// Row is a source's figure.
type Row struct {
	ID     string // readings have it
	Who    string // page, renderer, process …
	Figure string // its name, as records and people call it
	// wants is what it should see of kinds, nothing of those that are not named; nil: nobody knows.
	wants map[string]Want
	where where
}

// where is the platforms that a row's wants are true of.
type where int

const (
	everywhere where = iota // what a browser says of itself
	onLinux                 // what the kernel says, and of WebGPU where it is computed on the CPU
)

// Table is the shape of a matrix: what it has, whatever was measured.
type Table struct {
	Title string
	Kinds []Kind
	Rows  []Row
}

// Want is between what shares of a size a source should move, by the tolerances of the verdicts.
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

// Platform is what expectations hang on.
type Platform struct {
	OS       string // runtime.GOOS of where the processes are; empty: of another machine
	Software bool   // WebGPU is computed on the CPU
}

// want gives what is expected of a cell; false where nothing is.
func (p Platform) want(r Row, k Kind) (Want, bool) {
	if r.wants == nil || r.where == onLinux && (p.OS != "linux" || k.gpu && !p.Software) {
		return Want{}, false
	}
	return r.wants[k.ID], true // none where it isn't named
}
