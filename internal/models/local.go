package models

import (
	"cmp"
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"llmparity/internal/kit/fault"
)

// Prefixes of models that other tools have downloaded.
const (
	hub    = "hf:"     // Hugging Face's cache
	ollama = "ollama:" // Ollama's store
)

// hubName is the form of a repository's name, org/name, and of a file in it.
var hubName = regexp.MustCompile(`^([A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*)(?:/(.+))?$`)

// OfHub reports whether a name has the form org/name and is no file here.
func OfHub(name string) bool {
	found := hubName.FindStringSubmatch(name)
	if found == nil || found[2] != "" || IsFile(name) {
		return false
	}
	_, err := os.Lstat(name)
	return errors.Is(err, fs.ErrNotExist)
}

// Local returns the file or folder of a model that another tool has downloaded: hf:org/name, hf:org/name/file.gguf,
// org/name or ollama:name. ok is false for other names.
func Local(name string) (path string, ok bool, err error) {
	if rest, is := strings.CutPrefix(name, ollama); is {
		path, err = ollamaModel(rest)
		return path, true, err
	}
	rest, is := strings.CutPrefix(name, hub)
	if !is && !OfHub(name) {
		return "", false, nil
	}
	path, err = hubModel(rest)
	return path, true, err
}

// hubCache is the folder of Hugging Face's cache.
func hubCache() string {
	home, _ := os.UserHomeDir() // without one, nothing is found
	return cmp.Or(os.Getenv("HF_HUB_CACHE"), below(os.Getenv("HF_HOME"), "hub"),
		below(os.Getenv("XDG_CACHE_HOME"), "huggingface", "hub"), filepath.Join(home, ".cache", "huggingface", "hub"))
}

// below joins a path; empty if the folder is.
func below(dir string, parts ...string) string {
	if dir == "" {
		return ""
	}
	return filepath.Join(append([]string{dir}, parts...)...)
}

// hubModel finds org/name or org/name/file in Hugging Face's cache.
func hubModel(name string) (string, error) {
	found := hubName.FindStringSubmatch(name)
	if found == nil {
		return "", fault.New(fault.Usage, "write hf:ORG/NAME or hf:ORG/NAME/FILE.gguf", "model hf:%s is not a repository's name", name)
	}
	repo, file := found[1], found[2]
	in := filepath.Join(hubCache(), "models--"+strings.ReplaceAll(repo, "/", "--"))
	absent := fault.New(fault.BadModel, "get it with: hf download "+strings.TrimSpace(repo+" "+file),
		"model %s is not in Hugging Face's cache %s", name, hubCache())
	snapshots := snapshotsOf(in)
	if len(snapshots) == 0 {
		return "", absent
	}
	for _, dir := range snapshots {
		if file != "" {
			if path := filepath.Join(dir, filepath.FromSlash(file)); isThere(path) {
				return path, nil
			}
			continue
		}
		for _, f := range formats {
			files := f.within(dir)
			if len(files) > 1 {
				var names []string
				for _, path := range files {
					of, _ := filepath.Rel(dir, path) // it is below
					names = append(names, of)
				}
				return "", fault.New(fault.Usage, "name one, as in hf:"+repo+"/"+names[0],
					"model %s has %d %s files: %s", repo, len(names), f.Title, strings.Join(names, ", "))
			} else if len(files) == 1 {
				return files[0], nil
			}
		}
	}
	return "", absent
}

func isThere(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// snapshotsOf lists the snapshots of a repository in the cache: that of the main branch, then the newest first.
func snapshotsOf(repo string) []string {
	main, _ := os.ReadFile(filepath.Join(repo, "refs", "main")) // it may be missing
	found, _ := filepath.Glob(filepath.Join(repo, "snapshots", "*"))
	age := func(dir string) int64 {
		info, err := os.Stat(dir)
		if err != nil || filepath.Base(dir) == strings.TrimSpace(string(main)) {
			return math.MinInt64
		}
		return -info.ModTime().UnixNano()
	}
	slices.SortStableFunc(found, func(a, b string) int { return cmp.Compare(age(a), age(b)) })
	return found
}

// laterPart matches all parts of a split model but the first.
var laterPart = regexp.MustCompile(`-\d{5}-of-\d{5}\.\w+$`)

// within lists the models of the format in a folder: itself, or files, a split one by its first part.
func (f *Format) within(dir string) (out []string) {
	if f.Folder {
		if info, err := os.Stat(dir); err == nil && f.is(dir, info, "") {
			return []string{dir}
		}
		return nil
	}
	_ = filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		later := laterPart.MatchString(path) && !strings.Contains(path, "-00001-of-")
		if of, part := filed(path); err == nil && of == f && !part && !later {
			out = append(out, path)
		}
		return nil // what can't be read is not listed
	})
	return out
}

// ollamaStore is the folder of Ollama's store: the user's, or that of the service.
func ollamaStore() string {
	home, _ := os.UserHomeDir()
	own := cmp.Or(os.Getenv("OLLAMA_MODELS"), filepath.Join(home, ".ollama", "models"))
	const service = "/usr/share/ollama/.ollama/models"
	if os.Getenv("OLLAMA_MODELS") == "" && !isThere(own) && isThere(service) {
		return service
	}
	return own
}

// ollamaModel finds a model in Ollama's store.
func ollamaModel(name string) (string, error) {
	model, tag, tagged := strings.Cut(name, ":")
	if !tagged {
		tag = "latest"
	}
	parts := strings.Split(model, "/")
	if name == "" || len(parts) > 3 || slices.Contains(append(parts, tag), "") || strings.Contains(name, "..") {
		return "", fault.New(fault.Usage, "write ollama:NAME:TAG, as `ollama list` does", "model %s%s is not a name of Ollama's", ollama, name)
	}
	where := append(append([]string{"registry.ollama.ai", "library"}[:max(0, 3-len(parts))], parts...), tag)
	path, err := ollamaBlob(filepath.Join(append([]string{ollamaStore(), "manifests"}, where...)...))
	if errors.Is(err, fs.ErrNotExist) {
		return "", fault.New(fault.BadModel, "get it with: ollama pull "+name, "model %s is not in Ollama's store %s",
			name, ollamaStore())
	}
	return path, err
}

// ollamaBlob returns the file of the model that a manifest names.
func ollamaBlob(manifest string) (string, error) {
	text, err := os.ReadFile(manifest)
	if err != nil {
		return "", err
	}
	var said struct {
		Layers []struct{ MediaType, Digest string }
	}
	if err := json.Unmarshal(text, &said); err != nil {
		return "", fault.Wrap(fault.BadModel, err, "pull it again", "cannot read manifest %s", manifest)
	}
	blob := ""
	for _, l := range said.Layers {
		switch l.MediaType {
		case "application/vnd.ollama.image.model":
			blob = l.Digest
		case "application/vnd.ollama.image.adapter":
			return "", fault.New(fault.NotSupported, "use the model without it", "the model of manifest %s has an adapter, which only Ollama applies",
				manifest)
		}
	}
	algorithm, sum, ok := strings.Cut(blob, ":")
	if !ok || strings.ContainsAny(sum, `/\`) {
		return "", fault.New(fault.BadModel, "pull it again", "manifest %s names no model", manifest)
	}
	path := filepath.Join(ollamaStore(), "blobs", algorithm+"-"+sum)
	_, err = os.Stat(path)
	return path, err
}

// OnDisk is a model that another tool has downloaded.
type OnDisk struct {
	Name  string `json:"name"` // as --model takes it
	Path  string `json:"path"`
	Bytes int64  `json:"bytes"`
}

// LocalFolders returns the folders that AllLocal searches: Hugging Face's cache and Ollama's store.
func LocalFolders() (hub, ollama string) { return hubCache(), ollamaStore() }

// files lists the models in a folder that are files.
func files(dir string) (out []string) {
	for _, f := range formats {
		if !f.Folder {
			out = append(out, f.within(dir)...)
		}
	}
	return out
}

// AllLocal lists the models that are files in Hugging Face's cache and in Ollama's store.
func AllLocal() []OnDisk {
	out := []OnDisk{}
	repos, _ := filepath.Glob(filepath.Join(hubCache(), "models--*"))
	for _, repo := range repos {
		name := strings.ReplaceAll(strings.TrimPrefix(filepath.Base(repo), "models--"), "--", "/")
		seen := map[string]bool{}
		for _, dir := range snapshotsOf(repo) {
			for _, path := range files(dir) {
				if file, _ := filepath.Rel(dir, path); !seen[file] {
					seen[file] = true
					out = append(out, OnDisk{hub + name + "/" + file, path, sizeOf(path)})
				}
			}
		}
	}
	manifests := filepath.Join(ollamaStore(), "manifests")
	_ = filepath.WalkDir(manifests, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return nil
		}
		if blob, err := ollamaBlob(path); err == nil {
			of, _ := filepath.Rel(manifests, path)
			model, tag := filepath.Split(filepath.ToSlash(of))
			model = strings.TrimPrefix(strings.TrimPrefix(model, "registry.ollama.ai/"), "library/")
			out = append(out, OnDisk{ollama + strings.TrimSuffix(model, "/") + ":" + tag, blob, sizeOf(blob)})
		}
		return nil
	})
	return out
}

// sizeOf is the size of a file, or of all parts of a split model.
func sizeOf(path string) (n int64) {
	parts := []string{path}
	if laterPart.MatchString(path) {
		parts, _ = filepath.Glob(strings.Replace(path, "-00001-of-", "-*-of-", 1))
	}
	for _, part := range parts {
		if info, err := os.Stat(part); err == nil {
			n += info.Size()
		}
	}
	return n
}
