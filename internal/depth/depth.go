// Package depth holds what engines say of their own operators: how often each kernel ran, how long, and on how many
// bytes. Kernels of all engines have the same few roles, so that a table shows where two engines differ.
//
// Whoever times operators slows them down, so a profile never comes from a launch that is measured. The package can't
// say what a kernel is for but by its name.
package depth

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"
)

// Role is what a kernel does for the model.
type Role string

// Roles, in the order of a forward pass.
const (
	Embedding   Role = "embedding"
	Norm        Role = "norm"
	Attention   Role = "attention" // its projections and its rotation, too
	KVWrite     Role = "KV write"
	FeedForward Role = "feed-forward"
	Head        Role = "head"
	Sampling    Role = "sampling"
	Copy        Role = "copy"
	Matrix      Role = "matrix product" // whose use the name does not tell
	Other       Role = "other"
	Wait        Role = "dispatch and wait" // nothing computes
	Memory      Role = "memory"            // what a process holds; it has no time
)

// Roles lists them in that order.
var Roles = []Role{Embedding, Norm, Attention, KVWrite, FeedForward, Head, Matrix, Sampling, Copy, Other, Wait}

// Moments are the phases of rows that say what is held at a moment, with the role of what it is for.
var Moments = []string{"before load", "after load", "before inference", "after inference"}

// NoLayer is the layer of a kernel that belongs to none, or whose layer is unknown.
const NoLayer = -1

// Adapter is the phase of rows that tell what a device does at most, not what an engine did.
const Adapter = "adapter"

// Row is one kernel of an engine in one phase and layer.
type Row struct {
	Engine string
	Launch int
	Phase  string
	Layer  int // NoLayer: none
	Role   Role
	Kernel string
	Calls  int64
	Self   time.Duration // without the kernels that it calls
	Bytes  int64         // of its operands, as far as the engine tells, or that are held; 0: unknown
}

// Profile is what one generation showed.
type Profile struct {
	Rows  []Row
	Wall  map[string]time.Duration // of each phase, by the engine's usual clock
	Plain map[string]time.Duration // the same without a profile; nil: as long as the engine's usual generations
	Files []string                 // what the engine wrote besides
	Notes []string                 // what a reader must know
}

// Sum adds up the time of a phase.
func (p Profile) Sum(phase string) (sum time.Duration) {
	for _, r := range p.Rows {
		if r.Phase == phase {
			sum += r.Self
		}
	}
	return sum
}

// Add adds a call to the row of the same phase, layer, role and kernel.
func (p *Profile) Add(r Row) {
	i := slices.IndexFunc(p.Rows, func(o Row) bool {
		return o.Phase == r.Phase && o.Layer == r.Layer && o.Role == r.Role && o.Kernel == r.Kernel
	})
	if i < 0 {
		p.Rows = append(p.Rows, r)
		return
	}
	p.Rows[i].Calls += r.Calls
	p.Rows[i].Self += r.Self
	p.Rows[i].Bytes += r.Bytes
}

// Kernels adds up the rows of all layers, the longest first.
func Kernels(rows []Row) []Row {
	var sum Profile
	for _, r := range rows {
		r.Layer = NoLayer
		sum.Add(r)
	}
	slices.SortFunc(sum.Rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(b.Self, a.Self), cmp.Compare(a.Kernel, b.Kernel), cmp.Compare(a.Phase, b.Phase))
	})
	return sum.Rows
}

// heading is the first line of profile.csv.
var heading = []string{"engine", "launch", "phase", "layer", "role", "kernel", "calls", "self_ns", "bytes"}

// WriteCSV writes rows, those that take longest first in each engine and phase.
func WriteCSV(w io.Writer, rows []Row) error {
	sorted := slices.Clone(rows)
	slices.SortStableFunc(sorted, func(a, b Row) int {
		return cmp.Or(cmp.Compare(a.Engine, b.Engine), cmp.Compare(a.Launch, b.Launch), -cmp.Compare(a.Phase, b.Phase),
			-cmp.Compare(a.Self, b.Self))
	})
	out := csv.NewWriter(w)
	if err := out.Write(heading); err != nil {
		return err
	}
	number := func(v int64) string { return strconv.FormatInt(v, 10) }
	for _, r := range sorted {
		layer := ""
		if r.Layer != NoLayer {
			layer = strconv.Itoa(r.Layer)
		}
		if err := out.Write([]string{r.Engine, strconv.Itoa(r.Launch), r.Phase, layer, string(r.Role), r.Kernel,
			number(r.Calls), number(r.Self.Nanoseconds()), number(r.Bytes)}); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// ReadCSV reads what WriteCSV wrote.
func ReadCSV(r io.Reader) (rows []Row, err error) {
	in := csv.NewReader(r)
	in.FieldsPerRecord = len(heading)
	all, err := in.ReadAll()
	if err != nil {
		return nil, err
	}
	if len(all) == 0 || !slices.Equal(all[0], heading) {
		return nil, fmt.Errorf("line 1: the columns must be %v", heading)
	}
	for i, f := range all[1:] {
		row := Row{Engine: f[0], Phase: f[2], Layer: NoLayer, Role: Role(f[4]), Kernel: f[5]}
		numbers := []int64{0, NoLayer, 0, 0, 0} // launch, layer, calls, ns, bytes
		for at, column := range []int{1, 3, 6, 7, 8} {
			if column == 3 && f[column] == "" {
				continue
			}
			if numbers[at], err = strconv.ParseInt(f[column], 10, 64); err != nil || numbers[at] < 0 {
				return nil, fmt.Errorf("line %d: %s must be a number of at least 0, got %q", i+2, heading[column],
					f[column])
			}
		}
		row.Launch, row.Layer, row.Calls = int(numbers[0]), int(numbers[1]), numbers[2]
		row.Self, row.Bytes = time.Duration(numbers[3]), numbers[4]
		rows = append(rows, row)
	}
	return rows, nil
}
