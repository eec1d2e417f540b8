package machine

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/prometheus/procfs"

	"llmparity/internal/record"
)

// files are the files of a Linux machine, by paths without the leading slash.
type files struct {
	fs.FS
	proc procfs.FS
}

// at returns the files below a folder.
func at(root string) files {
	proc, _ := procfs.NewFS(filepath.Join(root, "proc")) // without it nothing is read there
	return files{os.DirFS(root), proc}
}

// text returns the content of a file; empty if it can't be read.
func (f files) text(name ...string) string {
	b, err := fs.ReadFile(f, path.Join(name...))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// number returns the number in a file.
func (f files) number(name ...string) (n int64, ok bool) {
	n, err := strconv.ParseInt(f.text(name...), 10, 64)
	return n, err == nil
}

// exists reports whether a file exists.
func (f files) exists(name string) bool {
	_, err := fs.Stat(f, name)
	return err == nil
}

// all returns the files that match a pattern, in order.
func (f files) all(pattern string) []string {
	found, _ := fs.Glob(f, pattern) // the patterns are valid
	return found
}

// describe fills in what the files contain.
func (f files) describe(env *record.Environment, getenv func(string) string) {
	info := parseCPUInfo(f.text("proc/cpuinfo"))
	env.CPU = info.name()
	env.Processor = f.processor(info)
	env.Governor = f.governors(f.policies())
	env.MemoryB, env.Memory = f.memory()
	env.Limits = f.limits()
	env.ContainerKind = f.container(getenv)
	env.Container = env.ContainerKind != ""
	env.Virtual = f.virtual(info)
	env.Display = display(getenv)
	env.Temperatures = f.temperatures()
}

// listed counts the numbers in a list such as 0-3,8; 0 if it is invalid.
func listed(text string) int {
	n := 0
	for part := range strings.SplitSeq(strings.TrimSpace(text), ",") {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		a, err := strconv.ParseUint(first, 10, 24)
		b, err2 := strconv.ParseUint(last, 10, 24)
		if err != nil || err2 != nil || b < a {
			return 0
		}
		n += int(b-a) + 1
	}
	return n
}

// chosen returns the word in brackets, as in "always [madvise] never".
func chosen(text string) string {
	_, rest, ok := strings.Cut(text, "[")
	word, _, closed := strings.Cut(rest, "]")
	if !ok || !closed {
		return ""
	}
	return strings.TrimSpace(word)
}
