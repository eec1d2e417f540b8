// Package baseline keeps runs that gates compare others against: a copy of the files of a run folder, under a name,
// with the hash of all files. The run folder may then be removed. A baseline can be moved to another machine, or kept
// in the cache of a CI.
//
// A name is a small file, written atomically, that names the copy. So a baseline exists completely or not at all, and
// replacing one takes effect at once. The package does not check whether a run is a good baseline.
package baseline

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"llmparity/internal/host/cache"
	"llmparity/internal/kit/fault"
	"llmparity/internal/kit/nearest"
	"llmparity/internal/kit/whole"
	"llmparity/internal/record"
	"llmparity/internal/record/runfolder"
)

// Schema identifies the layout of a baseline's file.
const Schema = "llmparity.baseline/1"

// Default is the store if none is named, in the current folder.
var Default = filepath.Join(".llmparity", "baselines")

// Baseline is a run that is saved under a name.
type Baseline struct {
	Schema  string    `json:"schema"`
	Name    string    `json:"name"`
	Run     string    `json:"run"`     // the plan's name
	Started time.Time `json:"started"` // when it was measured
	Saved   time.Time `json:"saved"`
	From    string    `json:"from"`   // the folder that it was copied from
	SHA256  string    `json:"sha256"` // of the names and contents of all files
	Files   int       `json:"files"`
	Bytes   int64     `json:"bytes"`
	Folder  string    `json:"folder"` // of the copy, beside this file
	// Dir is the copy as a path.
	Dir string `json:"-"`
}

// Store is a folder of baselines.
type Store struct{ Dir string }

var nameForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)

// hashForm is the form of a hash. It becomes part of the name of a folder that may be removed.
var hashForm = regexp.MustCompile(`^[0-9a-f]{64}$`)

const suffix = ".json"

// CheckName refuses names that can't be file names.
func CheckName(name string) error {
	if !nameForm.MatchString(name) || strings.HasSuffix(name, suffix) {
		return fault.New(fault.Usage, "use up to 100 letters, digits, dots, dashes and underscores, such as main",
			"baseline name %q is not valid: it becomes a file name", name)
	}
	return nil
}

// Save keeps a copy of a run under a name. With replace it replaces an existing baseline of that name.
func (s Store) Save(name string, run *record.Run, replace bool) (Baseline, error) {
	if err := CheckName(name); err != nil {
		return Baseline{}, err
	}
	old, err := s.Get(name)
	switch there := err == nil || !errors.Is(err, fs.ErrNotExist); {
	case there && !replace:
		return Baseline{}, fault.New(fault.Usage, "use --replace, or another name", "baseline %s already exists in %s",
			name, s.Dir)
	case err != nil:
		old = Baseline{} // broken, or none
	}
	aside, err := whole.NewFolder(s.Dir)
	if err != nil {
		return Baseline{}, s.unwritten(err)
	}
	defer aside.Remove()
	copied := filepath.Join(aside.Path, "run")
	b := Baseline{Schema: Schema, Name: name, Run: run.Meta.Name, Started: run.Meta.Started,
		Saved: time.Now().UTC().Truncate(time.Second), From: run.Dir}
	if err = copyRun(run.Dir, copied); err == nil {
		err = b.digest(copied)
	}
	if err != nil {
		return Baseline{}, s.unwritten(err)
	}
	b.Folder = folder(b)
	b.Dir = filepath.Join(s.Dir, b.Folder)
	// otherwise the same copy exists
	if there := (&Baseline{}); there.digest(b.Dir) != nil || there.SHA256 != b.SHA256 {
		err = errors.Join(os.RemoveAll(b.Dir), os.Rename(copied, b.Dir))
	}
	if err == nil {
		err = whole.JSON(filepath.Join(s.Dir, name+suffix), b)
	}
	if err != nil {
		return Baseline{}, s.unwritten(err)
	}
	if old.Folder != "" && old.Folder != b.Folder {
		_ = os.RemoveAll(old.Dir) // no name refers to it any more
	}
	return b, nil
}

// folder is the name of a baseline's copy.
func folder(b Baseline) string { return b.Name + "-" + b.SHA256[:12] }

func (s Store) unwritten(err error) error {
	return fault.WriteError(err, s.Dir, "name another folder with --store")
}

// rendered reports whether a file is made from the record and can be made again: reports, summaries, profiles.
func rendered(name string) bool {
	return name == "gate.json" || name == "summary.csv" || strings.HasPrefix(name, "profile-") ||
		slices.Contains([]string{".html", ".png", ".svg", ".pdf", ".parquet", ".lock"}, filepath.Ext(name))
}

// copyRun copies the files of a run folder. Folders in it hold logs, which no command reads.
func copyRun(from, to string) error {
	if err := os.Mkdir(to, 0o755); err != nil {
		return err
	}
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !e.Type().IsRegular() || rendered(e.Name()) {
			continue
		}
		if err := copyFile(filepath.Join(from, e.Name()), filepath.Join(to, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// copyFile also syncs the copy, before a name refers to it.
func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	return whole.Write(to, func(out io.Writer) error {
		_, err := io.Copy(out, in)
		return err
	})
}

// digest hashes all files of a copy, in the order of their names.
func (b *Baseline) digest(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	all := sha256.New()
	b.Files, b.Bytes = 0, 0
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			return err
		}
		sum, err := cache.HashFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(all, "%q %d %s\n", e.Name(), info.Size(), sum)
		b.Files, b.Bytes = b.Files+1, b.Bytes+info.Size()
	}
	b.SHA256 = hex.EncodeToString(all.Sum(nil))
	return nil
}

// Get finds a baseline by its name; fs.ErrNotExist if there is none.
func (s Store) Get(name string) (Baseline, error) {
	if err := CheckName(name); err != nil {
		return Baseline{}, err
	}
	path := filepath.Join(s.Dir, name+suffix)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		none := fault.New(fault.Usage, offer(name, s.Names()), "there is no baseline run %q in %s", name, s.Dir)
		none.Err = fs.ErrNotExist
		return Baseline{}, none
	}
	var b Baseline
	if err == nil {
		err = json.Unmarshal(text, &b)
	}
	switch {
	case err != nil:
	case b.Schema != Schema:
		err = fmt.Errorf("schema %q is not supported; this version reads %q", b.Schema, Schema)
	case b.Name != name || !hashForm.MatchString(b.SHA256) || b.Folder != folder(b):
		err = errors.New("its name, hash and folder do not match")
	}
	if err != nil {
		return Baseline{}, fault.Wrap(fault.BadRecord, err, "save it again with --replace, or remove it",
			"can't read the baseline %s", path)
	}
	b.Dir = filepath.Join(s.Dir, b.Folder)
	return b, nil
}

// Names are those of the baselines that can be read.
func (s Store) Names() (names []string) {
	all, _ := s.List()
	for _, b := range all {
		names = append(names, b.Name)
	}
	return names
}

// offer says what to do where a name is not among the names of the baselines.
func offer(name string, names []string) string {
	if len(names) == 0 {
		return "save one with `llmparity baseline save NAME DIR`"
	}
	return strings.TrimSpace(nearest.Question(name, names) + " available: " + strings.Join(names, ", "))
}

// Open finds a baseline and checks that its files are those that were saved.
func (s Store) Open(name string) (Baseline, error) {
	b, err := s.Get(name)
	if err != nil {
		return Baseline{}, err
	}
	now := Baseline{}
	if err := now.digest(b.Dir); err != nil {
		return Baseline{}, fault.Wrap(fault.BadRecord, err, "save it again with --replace",
			"can't read the baseline %s", name)
	}
	if now.SHA256 != b.SHA256 {
		return Baseline{}, fault.New(fault.BadRecord, "save it again with --replace",
			"the files of the baseline %s in %s changed after they were saved: SHA-256 %.12s, was %.12s",
			name, b.Dir, now.SHA256, b.SHA256)
	}
	return b, nil
}

// List returns all baselines, ordered by name. A broken one is an error.
func (s Store) List() ([]Baseline, error) {
	entries, err := os.ReadDir(s.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fault.Wrap(fault.BadRecord, err, "name another folder with --store", "can't read %s", s.Dir)
	}
	out := []Baseline{}
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), suffix)
		if !ok || !e.Type().IsRegular() || !nameForm.MatchString(name) {
			continue
		}
		b, err := s.Get(name)
		if err != nil {
			return out, err
		}
		out = append(out, b)
	}
	return out, nil
}

// Remove removes a baseline: first its name, then its copy.
func (s Store) Remove(name string) error {
	b, err := s.Get(name)
	if err != nil && fault.Of(err) != fault.BadRecord {
		return err
	}
	err = os.Remove(filepath.Join(s.Dir, name+suffix))
	if err == nil && b.Folder != "" { // else broken: its copy is not known
		err = os.RemoveAll(b.Dir)
	}
	return s.unwritten(err)
}

// Missing is the error for a baseline run that does not exist, unlike one that can't be read.
type Missing struct {
	error
	Others bool // other baselines are saved: the name is probably mistyped
}

func (m *Missing) Unwrap() error { return m.error }

// Find returns the folder of a baseline run, and its entry in the store; nil: it is not from the store. name is a path,
// or a name in the store, or a run folder if the store has no such name.
func (s Store) Find(name string) (dir string, stored *Baseline, err error) {
	_, err = s.Get(name)
	known := err == nil || fault.Of(err) == fault.BadRecord
	if CheckName(name) == nil && !runfolder.Is(name) || known {
		b, err := s.Open(name)
		if errors.Is(err, fs.ErrNotExist) && fault.Of(err) == fault.Usage {
			err = &Missing{err, len(s.Names()) > 0}
		}
		return b.Dir, &b, err
	}
	if _, err := os.Stat(name); errors.Is(err, fs.ErrNotExist) {
		return "", nil, &Missing{error: fault.New(fault.Usage, "name a saved baseline run, or a run folder",
			"there is no baseline run: folder %s does not exist", name)}
	}
	return name, nil, nil
}
