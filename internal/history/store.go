package history

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"llmparity/internal/kit/fault"
	"llmparity/internal/kit/whole"
	"llmparity/internal/kit/words"
	"llmparity/internal/kit/workers"
)

// Default is the store if none is named, in the current folder.
var Default = filepath.Join(".llmparity", "history")

// Folders of a store.
const (
	runs = "runs"
	acks = "acks"
)

// files is where a store is: a folder, or a branch of a git repository.
type files interface {
	// each calls do for all files of a folder, several at a time.
	each(ctx context.Context, folder string, do func(name string, text []byte)) error
	// put adds a file, unless it is there.
	put(ctx context.Context, folder, name string, text []byte) (added bool, err error)
}

// Store is a history on disk.
type Store struct {
	Where string
	files
}

// OfBranch begins the name of a store that is a branch of the repository in the current folder.
const OfBranch = "git:"

// Open opens a store, which need not exist: a folder, or git:BRANCH.
func Open(where string) *Store {
	if name, ok := strings.CutPrefix(where, OfBranch); ok {
		return &Store{where, branch{name: name}}
	}
	return &Store{where, folder(where)}
}

// Add adds a run. If it is there already, added is false.
func (s *Store) Add(ctx context.Context, r *Run) (added bool, err error) {
	if err := r.Check(); err != nil {
		return false, err
	}
	name, text, err := r.Encode()
	if err != nil {
		return false, err
	}
	r.ID = strings.TrimSuffix(name, suffix)
	return s.put(ctx, runs, name, text)
}

// Put adds runs, and says which were new.
func (s *Store) Put(ctx context.Context, w io.Writer, all ...*Run) error {
	for _, r := range all {
		added, err := s.Add(ctx, r)
		if err != nil {
			return err
		}
		word := "Added"
		if !added {
			word = "Already there:"
		}
		if _, err := fmt.Fprintf(w, "%s %s: %s, %s, %s\n", word, r.ID, words.Count(len(r.Cells), "cell"),
			words.Count(len(r.Launches), "launch"), words.Count(len(r.Figures), "figure")); err != nil {
			return err
		}
	}
	return nil
}

// Merge adds all runs and acknowledgements of another store.
func (s *Store) Merge(ctx context.Context, from *Store) (added, there int, err error) {
	var lock sync.Mutex
	var failed error
	for _, kind := range []string{runs, acks} {
		err := from.each(ctx, kind, func(name string, text []byte) {
			if _, wrong := Decode(text); kind == runs && wrong != nil {
				return // it is named by whoever reads that store
			}
			lock.Lock()
			defer lock.Unlock()
			switch isNew, err := s.put(ctx, kind, name, text); {
			case err != nil:
				failed = err
			case isNew:
				added++
			default:
				there++
			}
		})
		if err = errors.Join(err, failed); err != nil {
			return added, there, err
		}
	}
	return added, there, nil
}

// Broken is a file that can't be read, and why.
type Broken struct {
	Name string `json:"name"`
	Why  string `json:"why"`
}

// Each reads all runs, several at a time, and lists the files that can't be read.
func (s *Store) Each(ctx context.Context, do func(*Run)) (broken []Broken, err error) {
	var lock sync.Mutex
	var all reader
	err = s.each(ctx, runs, func(name string, text []byte) {
		id, ok := strings.CutSuffix(name, suffix)
		if !ok {
			return
		}
		r, err := all.decode(text)
		if err != nil {
			lock.Lock()
			defer lock.Unlock()
			broken = append(broken, Broken{name, err.Error()})
			return
		}
		r.ID = id
		do(r)
	})
	slices.SortFunc(broken, func(a, b Broken) int { return strings.Compare(a.Name, b.Name) })
	return broken, err
}

// folder is a store that is a folder.
type folder string

func (f folder) each(ctx context.Context, below string, do func(string, []byte)) error {
	dir := filepath.Join(string(f), below)
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	return workers.Each(ctx, runtime.NumCPU(), len(entries), func(_ context.Context, i int) error {
		if !entries[i].Type().IsRegular() || strings.HasPrefix(entries[i].Name(), ".") {
			return nil
		}
		text, err := os.ReadFile(filepath.Join(dir, entries[i].Name()))
		if err == nil {
			do(entries[i].Name(), text)
		}
		return err
	})
}

func (f folder) put(_ context.Context, below, name string, text []byte) (bool, error) {
	dir := filepath.Join(string(f), below)
	path := filepath.Join(dir, name)
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, text) {
		return false, nil
	}
	err := os.MkdirAll(dir, 0o755)
	if err == nil {
		err = whole.Fill(path, func(file *os.File) error { _, err := file.Write(text); return err })
	}
	if err == nil {
		err = syncFolder(dir) // the rename, too, must survive a power failure
	}
	if err != nil {
		return false, fault.WriteError(err, string(f), "name another folder with --store")
	}
	return true, nil
}

func syncFolder(dir string) error {
	if runtime.GOOS == "windows" { // it can't, and needn't
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Ack says that a change is known.
type Ack struct {
	Series string `json:"series"` // the key of its series; empty: all series of the run
	Run    string `json:"run"`    // the first run behind the change
	Commit string `json:"commit"`
	Better bool   `json:"better"` // which way it went
	Reason string `json:"reason"`
	By     string `json:"by,omitempty"`
}

// Acknowledge adds acknowledgements.
func (s *Store) Acknowledge(ctx context.Context, all ...Ack) error {
	for _, a := range all {
		text, err := json.MarshalIndent(a, "", "  ")
		if err != nil {
			return err
		}
		name := fmt.Sprintf("%s-%s.json", a.Run, hash(a.Series))
		if _, err := s.put(ctx, acks, name, append(text, '\n')); err != nil {
			return err
		}
	}
	return nil
}

// Acks are all acknowledgements.
func (s *Store) Acks(ctx context.Context) (all []Ack, broken []Broken, err error) {
	var lock sync.Mutex
	err = s.each(ctx, acks, func(name string, text []byte) {
		var a Ack
		wrong := json.Unmarshal(text, &a)
		lock.Lock()
		defer lock.Unlock()
		if wrong != nil {
			broken = append(broken, Broken{name, wrong.Error()})
		} else {
			all = append(all, a)
		}
	})
	return all, broken, err
}

// IsStore reports whether a path is a store: git:BRANCH, or a folder with runs.
func IsStore(where string) bool {
	if strings.HasPrefix(where, OfBranch) {
		return true
	}
	info, err := os.Stat(filepath.Join(where, runs))
	return err == nil && info.IsDir()
}
