package gate

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"llmparity/compare"
	"llmparity/internal/baseline"
	"llmparity/internal/fault"
	"llmparity/internal/figure"
	"llmparity/internal/gates"
	"llmparity/internal/record"
)

// File is what a run's folder has of its gate, for reports.
const File = "gate.json"

// Planned is the gate of a run's plan, as the run's folder has it and read reads it: package plan's GateIn.
func Planned(dir string, read func(text []byte, file string) (*gates.Gate, error)) (*gates.Gate, error) {
	const do = "give limits such as --max peak_pss_mb=900, or a file with --thresholds"
	path := filepath.Join(dir, "plan.yaml")
	text, err := os.ReadFile(path)
	if err != nil {
		if _, open := record.Open(dir); open != nil {
			return nil, open // which says what the folder lacks
		}
		return nil, fault.Wrap(fault.Usage, err, do, "the run's plan can't be read")
	}
	g, err := read(text, path)
	switch {
	case err != nil:
		return nil, err
	case g == nil:
		if s, err := record.Scan(dir); err == nil && s.Meta.Against != "" {
			return &gates.Gate{}, nil // what is held against the other side goes without saying
		}
		return nil, fault.New(fault.Usage, do, "the plan of %s has no gate", dir)
	}
	return g, nil
}

// Judge holds a run against a gate; name is the baseline run's, empty: the gate's own, or the run whose launches took
// turns with this one's, or none.
func Judge(run *record.Run, g *gates.Gate, name, store string, o compare.Options) (*gates.Outcome, error) {
	if name == "" && run.Meta.Against != "" {
		name = filepath.Join(filepath.Dir(filepath.Clean(run.Dir)), run.Meta.Against)
		if len(g.Changes) == 0 {
			with := *g
			with.Changes = usual()
			g = &with
		}
	}
	name = cmp.Or(name, g.Baseline)
	if g.Empty() && name == "" {
		return nil, fault.New(fault.Usage, "give limits such as peak_pss_mb: {max: 900}", "the gate has no checks")
	}
	if name == "" {
		return Evaluate(g, compare.With(o, run), nil), nil
	}
	dir, stored, err := baseline.Store{Dir: store}.Find(name)
	if missing := (*baseline.Missing)(nil); errors.As(err, &missing) {
		judged := Without(g, compare.With(o, run), name)
		why := fault.OneLine(err.Error())
		judged.Notes = append(judged.Notes, strings.ToUpper(why[:1])+why[1:]+".")
		return judged, nil
	}
	if err != nil {
		return nil, err
	}
	base, err := record.Open(dir)
	if err != nil {
		return nil, err
	}
	judged := Evaluate(g, compare.With(o, run), compare.With(o, base))
	if b := judged.Baseline; stored != nil {
		b.Stored, b.SHA256, b.Saved = stored.Name, stored.SHA256, stored.Saved
	}
	return judged, nil
}

// usual are held against the other side of a comparison where a plan's gate says nothing.
func usual() []gates.Change {
	return []gates.Change{{Figure: figure.Of(figure.DecodeTPS), Change: -0.05},
		{Figure: figure.Of(figure.PeakPSS), Change: 0.03},
		{Figure: figure.Of(figure.TTFT), Change: 0.10, Level: gates.Warn}}
}

// Fault is the exit code of an outcome: launches that failed are told apart from all else that fails.
func Fault(g *gates.Outcome) error {
	kind := fault.Run
	switch {
	case g.Status == gates.Inconclusive:
		kind = fault.Inconclusive
	case g.Status != gates.Failed:
		return nil
	case slices.ContainsFunc(g.Checks, func(c gates.Check) bool {
		return c.Status == gates.Failed && c.Kind != gates.KindLaunches
	}):
		kind = fault.Gate
	}
	return fault.New(kind, "", "%s", g.Verdict)
}

// Ready says before a run, which may take hours, what would keep it from being judged at its end. A baseline run that
// is not there yet does not: the run may be meant to become it, and the note says what comes of that.
func Ready(g *gates.Gate, name string) (note string, err error) {
	name = cmp.Or(name, g.Baseline)
	if name == "" {
		return "", nil
	}
	dir, _, err := baseline.Store{Dir: baseline.Default}.Find(name)
	if missing := (*baseline.Missing)(nil); errors.As(err, &missing) {
		if g.NoBaseline != gates.BaselineOptional {
			note = fmt.Sprintf("the gate will be inconclusive: %v (--no-baseline ok passes without)", err)
		}
		return note, nil
	}
	if err == nil {
		_, err = record.Open(dir)
	}
	return "", err
}

// Saved is what a run's folder has of its gate; nil where nobody judged it, or where it has gone on since.
func Saved(dir string, result *compare.Result) (*gates.Outcome, error) {
	path := filepath.Join(dir, File)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var g gates.Outcome
	if err == nil {
		err = json.Unmarshal(text, &g)
	}
	if err == nil && g.Schema != gates.Schema {
		err = fmt.Errorf("its schema is %q, this version reads %s", g.Schema, gates.Schema)
	}
	if err != nil {
		return nil, fault.Wrap(fault.BadRecord, err, "remove it", "%s can't be read", path)
	}
	if g.Run.Attempts != result.Attempts() {
		return nil, nil
	}
	return &g, nil
}
