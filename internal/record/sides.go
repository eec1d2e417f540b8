package record

import (
	"cmp"
	"os"
	"path/filepath"
)

// Sides are the folders of an interleaved run, whose sides lie beside each other.
type Sides struct {
	Baseline string
	Run      string // empty: it is not there
	Noise    string // empty: none was measured
}

// All are the folders that are there, in the order of their turns.
func (s Sides) All() (out []string) {
	for _, dir := range []string{s.Baseline, s.Noise, s.Run} {
		if dir != "" {
			out = append(out, dir)
		}
	}
	return out
}

// SidesOf finds the sides of the interleaved run that a folder is a side of. The folder may be a link, such as latest.
// false: its run has one side, or the baseline side is not there.
func SidesOf(dir string) (Sides, bool) {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	m, err := metaOf(dir)
	if err != nil || m.Side == nil && m.Against == "" {
		return Sides{}, false
	}
	root := filepath.Dir(filepath.Clean(dir))
	name := filepath.Base(cmp.Or(m.Against, dir))
	s := Sides{Baseline: filepath.Join(root, name)}
	all, err := os.ReadDir(root)
	if err != nil || !IsRun(s.Baseline) {
		return Sides{}, false
	}
	for _, entry := range all {
		other := filepath.Join(root, entry.Name())
		if !entry.IsDir() { // latest is a link
			continue
		}
		switch of, err := metaOf(other); {
		case err != nil || of.Against != name:
		case of.Side != nil && of.Side.Role == NoiseSide:
			s.Noise = other
		default:
			s.Run = other
		}
	}
	if m.Against != "" && (m.Side == nil || m.Side.Role == RunSide) {
		s.Run = dir // several may name one baseline run
	}
	return s, true
}

// metaOf reads a run's run.json alone.
func metaOf(dir string) (m Meta, err error) {
	return m, readJSON(filepath.Join(dir, metaFile), &m)
}
