package gate

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"llmparity/compare"
	"llmparity/compare/explain"
	"llmparity/internal/axis"
	"llmparity/internal/gates"
	"llmparity/internal/record"
)

// pair is a cell of the baseline run and the run's cell that matches it.
type pair struct {
	base, now *compare.Cell // now is nil if the cell is missing, base if it is new
	why       string        // why figures of the two cannot be compared; empty: they can
}

// match finds each cell of the baseline run in the run, and why figures of the pair cannot be compared.
func (j *judge) match() {
	j.pairs = pairs(j.base, j.now)
	system := machineChanged(j.base.Runs[0].Environment, j.now.Runs[0].Environment)
	system.add(gates.TestSystem, "llmparity", j.base.Runs[0].Tool.Version, j.now.Runs[0].Tool.Version)
	for i := range j.pairs {
		switch p := &j.pairs[i]; {
		case p.base == nil:
		case p.now == nil:
			check := gates.Check{Name: "cell of the baseline run", Kind: gates.KindCell, Cell: p.base.Label}
			j.add(check, cmp.Or(j.gate.Gone, gates.Error), gates.Failed,
				"missing: the run has no cell of that engine, prompt and length")
		default:
			all := slices.Concat(system, requestChanged(p.base, p.now), partsChanged(p.base, p.now))
			p.why = cmp.Or(p.why, j.sort(all))
		}
	}
}

// pairs matches cells of two runs: first cells with the same request and version, then with the same request, then with
// the same task.
func pairs(base, now *compare.Result) []pair {
	out := make([]pair, len(base.Cells))
	for i, c := range base.Cells {
		out[i].base = c
	}
	taken := map[*compare.Cell]bool{}
	exact := func(c *compare.Cell) string { return request(c) + " " + version(c) }
	for _, like := range []func(*compare.Cell) string{exact, request, task} {
		before, after := by(base, like), by(now, like)
		for i := range out {
			p, key := &out[i], like(out[i].base)
			at := slices.IndexFunc(after[key], func(n *compare.Cell) bool { return !taken[n] })
			if p.now != nil || at < 0 {
				continue
			}
			p.now = after[key][at]
			taken[p.now] = true
			other := version(p.base) != version(p.now) && request(p.base) == request(p.now)
			if other && len(before[key]) != len(after[key]) {
				p.why = "several cells have the same settings; it is not known which of them belong together"
			}
		}
	}
	for _, n := range now.Cells {
		if !taken[n] {
			out = append(out, pair{now: n})
		}
	}
	return out
}

// Differences lists how the parts and machines of two runs of one plan differ.
func Differences(was, is *compare.Result) []string {
	all := machineChanged(was.Runs[0].Environment, is.Runs[0].Environment)
	for _, p := range pairs(was, is) {
		if p.base != nil && p.now != nil && p.why == "" {
			all = append(all, partsChanged(p.base, p.now)...)
		}
	}
	var out []string
	for _, d := range all {
		out = explain.AppendNew(out, d.String())
	}
	return out
}

// by groups cells by a key.
func by(r *compare.Result, key func(*compare.Cell) string) map[string][]*compare.Cell {
	out := map[string][]*compare.Cell{}
	for _, c := range r.Cells {
		k := key(c)
		out[k] = append(out[k], c)
	}
	return out
}

func version(c *compare.Cell) string {
	if c.Engine == nil {
		return ""
	}
	return c.Engine.Version
}

// request identifies all that a cell requests.
func request(c *compare.Cell) string { return axis.Key(&c.Spec, func(*axis.Axis) bool { return true }) }

// task identifies the least that two cells have in common to be one cell that changed. A model can be under test.
func task(c *compare.Cell) string {
	return axis.Key(&c.Spec, func(x *axis.Axis) bool { return x.Role == axis.Task && x.Name != axis.Model })
}

// likeMemory is the share by which the memory of one machine may differ: the kernel reserves some of it.
const likeMemory = 0.05

// Kinds of differences that are never under test.
const (
	machine     = "machine"
	measurement = "measurement"
)

// difference is something that differs from the baseline run.
type difference struct {
	kind    string // of gates.UnderTests, gates.TestSystem, machine or measurement
	what    string
	was, is string
}

func (d difference) String() string {
	return fmt.Sprintf("%s %s, baseline run %s", d.what, cmp.Or(d.is, "not known"), cmp.Or(d.was, "not known"))
}

// differences collects them. add omits a value that one side does not report; always does not.
type differences []difference

func (d *differences) add(kind, what, was, is string) {
	if was != is && was != "" && is != "" {
		d.always(kind, what, was, is)
	}
}

func (d *differences) always(kind, what, was, is string) {
	if was != is {
		*d = append(*d, difference{kind, what, was, is})
	}
}

// machineChanged lists how a machine and its system differ from the baseline run's.
func machineChanged(b, n record.Environment) (out differences) {
	out.add(machine, "architecture", b.Arch, n.Arch)
	out.add(machine, "CPU model", b.CPU, n.CPU)
	out.add(machine, "cores", fmt.Sprint(b.Cores), fmt.Sprint(n.Cores))
	out.add(machine, "governor", b.Governor, n.Governor)
	out.add(machine, "virtual machine", b.Virtual, n.Virtual)
	if b.MemoryB > 0 && n.MemoryB > 0 && math.Abs(float64(n.MemoryB-b.MemoryB)) > likeMemory*float64(b.MemoryB) {
		out.add(machine, "memory", gib(b.MemoryB), gib(n.MemoryB))
	}
	if b.Limits != nil && n.Limits != nil {
		out.add(machine, "quota of cores", quota(b.Limits.CPUs), quota(n.Limits.CPUs))
	}
	if b.Processor != nil && n.Processor != nil {
		out.add(machine, "turbo", b.Processor.Turbo, n.Processor.Turbo)
	}
	out.add(gates.TestSystem, "OS", b.OS, n.OS)
	out.add(gates.TestSystem, "OS kernel", b.Kernel, n.Kernel)
	out.add(gates.TestSystem, "GPU driver", drivers(b), drivers(n))
	return out
}

func drivers(e record.Environment) string {
	var out []string
	for _, g := range e.GPUs {
		out = append(out, g.Driver)
	}
	return strings.Join(out, ", ")
}

func gib(bytes int64) string { return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30)) }

func quota(cores float64) string {
	if cores == 0 {
		return "none"
	}
	return num(cores)
}

// requestChanged lists how the requests of two cells differ. partsChanged has the versions.
func requestChanged(b, n *compare.Cell) (out differences) {
	x, y := b.Spec.Model, n.Spec.Model
	out.always(gates.TestModel, "model", x.Name, y.Name)
	if x.Name == y.Name {
		out.always(gates.TestModel, "model file", short(x.SHA256), short(y.SHA256))
	}
	out.always(gates.TestModel, "weights dtype", x.DType, y.DType)
	for _, x := range axis.Differ(&b.Spec, &n.Spec,
		func(x *axis.Axis) bool { return x.Role != axis.Task && !x.Version() }) {
		kind := gates.TestSettings
		if x.Role == axis.Measurement {
			kind = measurement
		}
		out.always(kind, x.Title, x.Value(&b.Spec), x.Value(&n.Spec))
	}
	return out
}

// partsChanged lists how the devices, parts and reported settings of two cells differ. Parts that follow from a version
// are omitted.
func partsChanged(b, n *compare.Cell) (out differences) {
	if b.Device != nil && n.Device != nil {
		out.add(machine, "device class", string(b.Device.Class), string(n.Device.Class))
		out.always(machine, "device", b.Device.Name, n.Device.Name)
	}
	if b.Engine == nil || n.Engine == nil {
		return out
	}
	engine := n.Spec.Engine
	was, is := b.Engine, n.Engine
	if out.always(gates.TestEngine, engine, was.Version, is.Version); was.Version == is.Version {
		out.add(gates.TestEngine, engine+" program", short(was.SHA256), short(is.SHA256))
	}
	keys := map[string]string{}
	maps.Copy(keys, was.Parts)
	maps.Copy(keys, is.Parts)
	seen := map[string]bool{}
	for _, key := range slices.SortedFunc(maps.Keys(keys), headFirst) {
		x, y := was.Parts[key], is.Parts[key]
		kind := kindOf(key, x, y)
		// The first difference of a kind is enough: a checksum that follows from a version adds nothing. What one
		// side does not report may be missing because an older llmparity wrote the record.
		unreported := (x == "" || y == "") && key != "browser"
		if x == y || unreported || seen[kind] || kind == gates.TestEngine && was.Version != is.Version {
			continue
		}
		seen[kind] = true
		seen[gates.TestLibrary] = seen[gates.TestLibrary] || kind == gates.TestKernels // its bytes differ, too
		part := strings.ReplaceAll(strings.TrimPrefix(key, engine+"_"), "_", " ")
		out.always(kind, engine+"'s "+part+":", shortSum(x), shortSum(y))
	}
	for _, key := range slices.Sorted(maps.Keys(was.Policy)) {
		if key != "context" { // requestChanged has it
			out.add(gates.TestSettings, engine+" "+strings.ReplaceAll(key, "_", " "), was.Policy[key], is.Policy[key])
		}
	}
	return out
}

// headFirst puts names before their properties, such as browser before browser_build_id.
func headFirst(a, b string) int {
	head := func(s string) int {
		return map[string]int{"browser": -2, "model_library": -2, "model_library_source": -1}[s]
	}
	return cmp.Or(head(a)-head(b), cmp.Compare(a, b))
}

// kindOf is the kind of a difference in a part of an engine.
func kindOf(key, was, is string) string {
	switch {
	case strings.HasPrefix(key, "browser") || key == "user_agent" || key == "javascript":
		return gates.TestBrowser
	case key == "model_library":
		maker, _, _ := strings.Cut(was, " (")
		if now, _, _ := strings.Cut(is, " ("); now == maker {
			return gates.TestKernels // the same maker's, with other kernels
		}
		return gates.TestLibrary
	case strings.HasPrefix(key, "model_library"):
		return gates.TestLibrary
	case strings.HasPrefix(key, "model"):
		return gates.TestModel
	}
	return gates.TestEngine
}

// sort adds notes about differences that are under test, and returns those that are not; empty: none.
func (j *judge) sort(all differences) string {
	var others []string
	named := map[string]bool{}
	for _, d := range all {
		if d.kind != machine && d.kind != measurement && j.gate.Tests(d.kind) {
			j.note("under test: %s", d)
			continue
		}
		others = append(others, d.String())
		named[d.kind] = true
	}
	if len(others) == 0 {
		return ""
	}
	why := "differs and is not under test: " + strings.Join(others, "; ")
	if named[machine] || named[measurement] {
		return why
	}
	kinds := slices.Sorted(maps.Keys(named))
	if named[gates.TestSystem] {
		return why + " (--under-test all)"
	}
	return fmt.Sprintf("%s (--under-test %s)", why, strings.Join(kinds, ","))
}

// short is the beginning of a hash.
func short(sha string) string { return sha[:min(len(sha), 12)] }

// shortSum shortens a hash and leaves other texts.
func shortSum(s string) string {
	if len(s) == 64 && !strings.ContainsAny(s, " .") {
		return short(s)
	}
	return s
}
