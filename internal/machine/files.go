package machine

import (
	"io/fs"
	"path"
	"strconv"
	"strings"

	"llmparity/internal/record"
)

// files are a Linux machine's, by their paths without the first slash.
type files struct{ fs.FS }

// text is what a file says; empty where there is none, or nobody may read it.
func (f files) text(name ...string) string {
	b, err := fs.ReadFile(f, path.Join(name...))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// number is a file's; ok tells whether it has one.
func (f files) number(name ...string) (n int64, ok bool) {
	n, err := strconv.ParseInt(f.text(name...), 10, 64)
	return n, err == nil
}

// exists tells whether a file is there.
func (f files) exists(name string) bool {
	_, err := fs.Stat(f, name)
	return err == nil
}

// all are the files of a pattern, in order.
func (f files) all(pattern string) []string {
	found, _ := fs.Glob(f, pattern) // the patterns are well formed
	return found
}

// describe fills in what the files tell.
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

// listed counts the numbers of a list of the kernel's, as in 0-3,8; 0 where it is none.
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

// chosen is the word in brackets, as in always [madvise] never.
func chosen(text string) string {
	_, rest, ok := strings.Cut(text, "[")
	word, _, closed := strings.Cut(rest, "]")
	if !ok || !closed {
		return ""
	}
	return strings.TrimSpace(word)
}
