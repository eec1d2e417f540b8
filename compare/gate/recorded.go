package gate

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"llmparity/compare"
	"llmparity/internal/baseline"
	"llmparity/internal/gates"
	"llmparity/internal/kit/fault"
	"llmparity/internal/record"
)

// File is the outcome of a gate in a run's folder.
const File = "gate.json"

// Planned is the gate of the plan in a run's folder, which read decodes (plan.GateIn). It is empty if the plan has
// none.
func Planned(dir string, read func(text []byte, file string) (*gates.Gate, error)) (*gates.Gate, error) {
	const do = "give limits such as --max peak_pss_mb=900, or a file with --thresholds"
	path := filepath.Join(dir, "plan.yaml")
	text, err := os.ReadFile(path)
	if err != nil {
		if _, open := record.Open(dir); open != nil {
			return nil, open // it says what the folder lacks
		}
		return nil, fault.Wrap(fault.Usage, err, do, "the run's plan can't be read")
	}
	g, err := read(text, path)
	if g == nil {
		g = &gates.Gate{}
	}
	return g, err
}

// Named is the baseline run of a run: the requested one, else the run that it was interleaved with, else the gate's;
// empty: none.
func Named(run *record.Run, g *gates.Gate, requested string) string {
	if requested == "" && run.Meta.Against != "" {
		return filepath.Join(filepath.Dir(filepath.Clean(run.Dir)), run.Meta.Against)
	}
	return cmp.Or(requested, g.Baseline)
}

// Against is what a run is judged against.
type Against struct {
	Name  string   // of a saved baseline run, or a run's folder; empty: none
	Store string   // folder of saved baseline runs
	Sides []string // what interleaved runs are called, the baseline run first; empty: by their plans
}

// Judge judges a run by a gate and a baseline run.
func Judge(run *record.Run, g *gates.Gate, of Against, o compare.Rules) (*gates.Outcome, error) {
	name := of.Name
	if g.Empty() && name == "" {
		return nil, noChecks("--max peak_pss_mb=900")
	}
	if name == "" {
		return Evaluate(g, compare.With(o, run), nil), nil
	}
	dir, stored, err := baseline.Store{Dir: of.Store}.Find(name)
	missing, err := without(g, err)
	if missing {
		judged := evaluate(g, compare.With(o, run), nil, of)
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
	judged := evaluate(g, compare.With(o, run), compare.With(o, base), of)
	if b := judged.Baseline; stored != nil {
		b.Stored, b.SHA256, b.Saved = stored.Name, stored.SHA256, stored.Saved
	}
	if base.Meta.Name == run.Meta.Name && base.Meta.Started.Equal(run.Meta.Started) {
		judged.Verdict += " The baseline run is this run itself."
	}
	return judged, nil
}

// without reports whether a gate is judged without the baseline run that err says is missing. If others are saved, the
// name is probably mistyped, and such a gate would never compare anything: only no_baseline allows that.
func without(g *gates.Gate, err error) (bool, error) {
	missing, ok := errors.AsType[*baseline.Missing](err)
	if ok && missing.Others && g.NoBaseline != gates.BaselineOptional {
		return false, fmt.Errorf("%w (--no-baseline ok passes without)", err)
	}
	return ok, err
}

func noChecks(limit string) error {
	return fault.New(fault.Usage, "give limits such as "+limit+", or name a baseline run with --baseline",
		"the gate has no checks")
}

// Fault is an outcome's error. Failed launches have an exit code of their own. It has no text if the verdict was shown.
func Fault(g *gates.Outcome, shown bool) error {
	kind := fault.Run
	switch {
	case g.Status == gates.Inconclusive:
		kind = fault.Inconclusive
	case g.Status != gates.Failed:
		return nil
	case !g.LaunchesAlone():
		kind = fault.Gate
	}
	if shown {
		return fault.New(kind, "", "")
	}
	return fault.New(kind, "", "%s", g.Verdict)
}

// Ready reports, before a run that may take hours, what would prevent judging it at its end. A baseline run that only
// the plan names may be missing, because the run may be meant to become it: the note says what follows.
func Ready(g *gates.Gate, name string) (note string, err error) {
	given := name != ""
	if name = cmp.Or(name, g.Baseline); name == "" {
		if g.Empty() {
			err = noChecks("peak_pss_mb: {max: 900}")
		}
		return "", err
	}
	dir, _, err := baseline.Store{Dir: baseline.Default}.Find(name)
	missing, err := without(g, err)
	if missing {
		switch {
		case g.NoBaseline == gates.BaselineOptional:
		case given:
			return "", fault.Wrap(fault.Usage, err, "--no-baseline ok runs without", "--baseline")
		default:
			note = fmt.Sprintf("the gate will be inconclusive: %v (--no-baseline ok passes without)", err)
		}
		return note, nil
	}
	if err == nil {
		_, err = record.Open(dir)
	}
	return "", err
}

// Saved is the outcome in a run's folder; nil: it was not judged, or it was resumed since. The run is the last of the
// result.
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
	if g.Run.Attempts != result.Attempts(len(result.Runs)-1) {
		return nil, nil
	}
	return &g, nil
}
