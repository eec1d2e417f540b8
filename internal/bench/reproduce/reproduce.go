// Package reproduce prepares the repetition of a recorded run: its plan, what it was run with, and what differs here.
// It starts programs only to ask for their version. What an engine reports only while it runs is listed as not checked.
package reproduce

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode"

	"llmparity/compare/explain"
	"llmparity/internal/bench/plan"
	"llmparity/internal/engine"
	"llmparity/internal/host/machine"
	"llmparity/internal/host/sample/gpu"
	"llmparity/internal/kit/fault"
	"llmparity/internal/kit/words"
	"llmparity/internal/record"
	"llmparity/internal/record/differ"
)

// Schema names the JSON format of a Reproduction. Fields may be added to a format, not removed or changed.
const Schema = "llmparity.reproduce/1"

// Reproduction is the result; docs/howto/reproduce-a-run.md describes it.
type Reproduction struct {
	Schema      string              `json:"schema"`
	Record      string              `json:"record"`
	Plan        string              `json:"plan"` // YAML text
	Differences []differ.Difference `json:"differences"`
	Unknown     []string            `json:"not_looked_at"` // not checked: may differ too
	Checklist   []explain.Check     `json:"checklist"`
	ExitCode    int                 `json:"exit_code"`
}

// Here is this program and the engines on this machine.
type Here struct {
	Tool   record.Tool
	Kinds  engine.Kinds
	Choice *engine.Choice // settings from the run's plan and from flags
}

// Plan returns the plan of a run, as text and parsed.
func Plan(was *record.Run, kinds engine.Kinds) ([]byte, plan.Plan, error) {
	s, err := record.Scan(was.Dir)
	if err != nil {
		return nil, plan.Plan{}, err
	}
	p, err := plan.Parse(s.Plan, "plan.yaml", kinds...)
	if err != nil {
		return nil, p, fault.Wrap(fault.BadRecord, err, "use llmparity "+was.Meta.Tool.Version+
			", which wrote it", "this version cannot read the plan of %s", was.Dir)
	}
	return s.Plan, p, nil
}

// Of compares a run with what would run here. Its plan is p, planned is the text.
func Of(ctx context.Context, was *record.Run, planned []byte, p plan.Plan, here Here) *Reproduction {
	r := &Reproduction{Schema: Schema, Record: was.Dir, Plan: again(was, planned), Unknown: []string{},
		Checklist: explain.Checklist(was)}
	now := machine.Describe(ctx, 0)
	gpus := gpu.Open(ctx, gpu.Options{})
	now.GPUs = gpus.GPUs
	gpus.Close()
	r.add("", differ.Machines(was.Environment, now))
	r.program(was, here.Tool)
	r.engines(ctx, here, was)
	r.models(ctx, was, p)
	r.sort()
	if r.changing() > 0 {
		r.ExitCode = fault.Run.ExitCode()
	}
	return r
}

// Err counts the differences that can change figures; nil: none.
func (r *Reproduction) Err() error {
	n := r.changing()
	if n == 0 {
		return nil
	}
	return fault.New(fault.Run, "do not expect the same figures here", "%s can change figures",
		words.Count(n, "difference"))
}

// Print lists what differs.
func (r *Reproduction) Print(w io.Writer) {
	fmt.Fprintf(w, "Differences between %s and this machine\n", r.Record)
	if len(r.Differences) == 0 {
		fmt.Fprintln(w, "  none found")
	}
	for _, d := range r.Differences {
		mark := "state  "
		if d.Figures {
			mark = "FIGURES"
		}
		fmt.Fprintf(w, "  %s  %s: %s then, %s now\n", mark, d.What, cmp.Or(d.Was, "unknown"),
			cmp.Or(d.Is, "unknown"))
	}
	if len(r.Unknown) > 0 {
		fmt.Fprintln(w, "\nNot checked")
	}
	for _, u := range r.Unknown {
		fmt.Fprintf(w, "  %s\n", u)
	}
	fmt.Fprintln(w, "\nIs the run reproducible?")
	for _, c := range r.Checklist {
		fmt.Fprintf(w, "  %-7s  %s: %s\n", c.Answer, c.Item, c.Why)
	}
}

// add adds differences; of begins their names. What one side does not know is unknown.
func (r *Reproduction) add(of string, all []differ.Difference) {
	for _, d := range all {
		if d.What = of + d.What; d.Known {
			r.Differences = append(r.Differences, d)
		} else {
			r.unknown("%s: %s then, %s now", d.What, cmp.Or(d.Was, "not known"), cmp.Or(d.Is, "not known"))
		}
	}
}

// differ adds a difference, if there is one.
func (r *Reproduction) differ(what, was, is string, figures bool) {
	if was != is {
		d := record.Difference{What: what, Was: was, Is: is}
		r.Differences = append(r.Differences, differ.Difference{Difference: d, Figures: figures, Known: true})
	}
}

func (r *Reproduction) unknown(format string, args ...any) {
	r.Unknown = explain.AppendNew(r.Unknown, fmt.Sprintf(format, args...))
}

// sort puts differences that can change figures first, and removes duplicates.
func (r *Reproduction) sort() {
	once := []differ.Difference{}
	for _, figures := range []bool{true, false} {
		for _, d := range r.Differences {
			if d.Figures == figures {
				once = explain.AppendNew(once, d)
			}
		}
	}
	r.Differences = once
}

func (r *Reproduction) changing() (n int) {
	for _, d := range r.Differences {
		if d.Figures {
			n++
		}
	}
	return n
}

// printable replaces characters that YAML does not allow in comments.
func printable(r rune) rune {
	if !unicode.IsPrint(r) {
		return '?'
	}
	return r
}

// again is the plan below a comment with what it was run with.
func again(was *record.Run, planned []byte) string {
	var out bytes.Buffer
	line := func(begin, format string, args ...any) {
		text := strings.Join(strings.Fields(fmt.Sprintf(format, args...)), " ")
		fmt.Fprintf(&out, "%s%s\n", begin, strings.Map(printable, text))
	}
	say := func(format string, args ...any) { line("# ", format, args...) }
	part := func(format string, args ...any) { line("#   ", format, args...) }
	say("Plan of the run %q of %s, with defaults made explicit.", was.Meta.Name,
		was.Meta.Started.Format("2006-01-02 15:04:05 MST"))
	say("llmparity %s, sha256 %s, %s/%s", was.Meta.Tool.Version, was.Meta.Tool.SHA256, was.Meta.Tool.GoOS,
		was.Meta.Tool.GoArch)
	e := was.Environment
	say("Machine: %s, %d cores, %.1f GiB, %s, kernel %s", e.CPU, e.Cores, float64(e.MemoryB)/(1<<30), e.OS, e.Kernel)
	for _, m := range modelsOf(was) {
		say("Model: %s (%s, %s, %d bytes), sha256 %s", m.Name, m.Format, m.DType, m.FileB, m.SHA256)
	}
	for _, info := range enginesOf(was) {
		say("Engine: %s %s at %s, sha256 %s", info.Name, info.Version, cmp.Or(info.Path, "no path"),
			cmp.Or(info.SHA256, "unknown"))
		parts := info.Identity()
		for _, name := range slices.Sorted(maps.Keys(parts)) {
			part("%s: %s", name, parts[name])
		}
		for _, policy := range info.policies() {
			part("%s: %s", policy[0], policy[1])
		}
		for _, line := range info.arguments() {
			part("%s", line)
		}
	}
	out.Write(planned)
	return out.String()
}
