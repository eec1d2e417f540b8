package gate

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"llmparity/compare"
	"llmparity/compare/explain"
	"llmparity/internal/axis"
	"llmparity/internal/gates"
	"llmparity/internal/record"
	"llmparity/internal/record/differ"
)

// pair is a cell of the baseline run and the run's cell that matches it.
type pair struct {
	base, now *compare.Cell // now is nil if the cell is missing, base if it is new
	why       string        // why figures of the two cannot be compared; empty: they can
}

// match finds each cell of the baseline run in the run, and why figures of the pair cannot be compared.
func (j *judge) match() {
	j.pairs = pairs(j.base, j.now)
	before, now := j.base.Runs[0].Tool.Version, j.now.Runs[0].Tool.Version // another build of one is no difference
	system := machineChanged(j.base, j.now)
	system.takeAll(differ.Tools(record.Tool{Version: before}, record.Tool{Version: now}))
	for i := range j.pairs {
		switch p := &j.pairs[i]; {
		case p.base == nil:
		case p.now == nil:
			check := gates.Check{Name: "cell of " + j.named, Kind: gates.KindCell, Cell: p.base.Label}
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
	all := machineChanged(was, is)
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

// Kinds of differences that are never under test.
const (
	machine     = string(differ.Machine)
	measurement = "measurement"
)

// difference is something that differs from the baseline run.
type difference struct {
	kind    string // of gates.UnderTests, gates.TestSystem, machine or measurement
	what    string
	was, is string
}

func (d difference) String() string { return d.from("the baseline run") }

// from is the difference from a named baseline run.
func (d difference) from(name string) string {
	if strings.HasPrefix(d.was, name) { // a build that is named by its file
		return fmt.Sprintf("%s %s, was %s", d.what, d.is, d.was)
	}
	return fmt.Sprintf("%s %s, %s %s", d.what, cmp.Or(d.is, "not known"), called(name), cmp.Or(d.was, "not known"))
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

// take adds one that is known and can change figures.
func (d *differences) take(what string, x differ.Difference) {
	if x.Known && x.Figures {
		d.always(string(x.Kind), what, shortSum(x.Was), shortSum(x.Is))
	}
}

func (d *differences) takeAll(all []differ.Difference) {
	for _, x := range all {
		d.take(x.What, x)
	}
}

// machineChanged lists how a machine and its system differ from the baseline run's.
func machineChanged(base, now *compare.Result) (out differences) {
	out.takeAll(differ.Machines(base.Runs[0].Environment, now.Runs[0].Environment))
	return out
}

// partsChanged lists how the devices, parts and reported settings of two cells differ. Parts that follow from a version
// are omitted.
func partsChanged(b, n *compare.Cell) (out differences) {
	if b.Device != nil && n.Device != nil {
		out.takeAll(differ.Devices(*b.Device, *n.Device))
	}
	if b.Engine == nil || n.Engine == nil {
		return out
	}
	engine := n.Spec.Engine
	for _, d := range differ.Engines(*b.Engine, *n.Engine) {
		what := engine + "'s " + d.What + ":"
		if d.What == differ.Version {
			what = engine
		}
		out.take(what, d)
	}
	out.add(gates.TestSettings, engine+" weights", b.Weights().String(), n.Weights().String())
	was, is := b.Engine.Policy, n.Engine.Policy
	for _, key := range slices.Sorted(maps.Keys(was)) {
		if key != "context" { // it was requested
			out.add(gates.TestSettings, engine+" "+strings.ReplaceAll(key, "_", " "), was[key], is[key])
		}
	}
	return out
}

// sort adds notes about differences that are under test, and returns those that are not; empty: none.
func (j *judge) sort(all differences) string {
	var others []string
	named := map[string]bool{}
	for _, d := range all {
		if d.kind != machine && d.kind != measurement && j.gate.Tests(d.kind) {
			j.note("under test: %s", d.from(j.named))
			continue
		}
		others = append(others, d.from(j.named))
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
