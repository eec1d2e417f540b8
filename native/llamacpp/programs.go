package llamacpp

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"llmparity/internal/host/cache"
	"llmparity/internal/kit/fault"
	"llmparity/internal/record"
	"llmparity/native/program"
)

// identity describes a program.
type identity struct {
	program               program.Program
	path, version, sha256 string
	options               options
	libraries             string // hash of its shared libraries; empty: it has none
}

// info describes the program as it was started.
func (i identity) info(name string, args []string, policy map[string]string) record.EngineInfo {
	parts := map[string]string{}
	if i.libraries != "" {
		parts["libraries_sha256"] = i.libraries
	}
	return record.EngineInfo{Name: name, Version: i.version, Commit: commitOf(i.version), Path: i.path,
		Computes: "ggml", SHA256: i.sha256, Args: args, Parts: parts, Policy: policy}
}

// commitForm is the commit in a version: "3000 (0a0a0a0a)", or in newer ones "0.6.0-dev (build 11434, commit
// 0a0a0a0a)".
var commitForm = regexp.MustCompile(`\((?:build \d+, commit )?([0-9a-f]{7,40})\)$`)

// commitOf is the commit that a version names; empty: none, as a build from an archive does not know it.
func commitOf(version string) string {
	m := commitForm.FindStringSubmatch(version)
	if m == nil {
		return ""
	}
	return m[1]
}

// versionLine matches the version in what the programs print.
var versionLine = regexp.MustCompile(`(?m)^version:(.*)$`)

// Environment variables that name programs.
const (
	PathVariable = "LLMPARITY_LLAMA_SERVER"
	CLIVariable  = "LLMPARITY_LLAMA_CLI"
)

// Names of builds, in place of paths: the usual one, and one with vectors of 128 bits alone.
const (
	usual  = "default"
	narrow = "simd128"
)

// program returns one of llama.cpp's programs, and where the user says that it is.
func (c Config) program(oneShot bool) (p program.Program, given string) {
	p = program.Program{Names: []string{"llama-server"}, Build: "llamacpp/current/bin", Flag: "--llama-server",
		Variable: PathVariable, In: c.in, Kind: fault.NoLlamaServer}
	build := "make setup"
	given = c.Path
	if oneShot {
		// It was once llama-cli, and main before that. Newer llama-cli is a chat client, which its help reveals.
		p.Names, p.Flag, p.Variable = []string{"llama-completion", "llama-cli"}, "--llamacpp-cli", CLIVariable
		build, given, p.In = "scripts/setup llamacpp-tools", c.CLI, nil
	}
	switch given {
	case usual:
		given = ""
	case narrow:
		build = "scripts/setup llamacpp-" + narrow
		given = filepath.Join(c.Cache, "llamacpp-"+narrow, "current", "bin", p.Names[0])
	}
	p.Do = fmt.Sprintf("run `%s`, put it on PATH, or set %s", build, p.Flag)
	return p, given
}

// find searches for a program at the given path, then on PATH, then in the cache.
func (c Config) find(oneShot bool) (string, error) {
	p, given := c.program(oneShot)
	return p.Find(given, c.Cache)
}

// Find searches for llama-server.
func Find(c Config) (string, error) { return c.find(false) }

// LibrariesSHA256 hashes llama.cpp's own shared libraries beside a program or in lib beside its folder. If there are
// any, the computation is in them and not in the program. It returns "" if there are none or one is unreadable.
// Libraries in other places and of other projects are not covered.
func LibrariesSHA256(program string) string {
	program, err := filepath.EvalSymlinks(program)
	if err != nil {
		return ""
	}
	sums := map[string]string{} // by file, which may have several names
	for _, dir := range []string{filepath.Dir(program), filepath.Join(filepath.Dir(program), "..", "lib")} {
		entries, _ := os.ReadDir(dir) // missing: it has none
		for _, e := range entries {
			if !itsOwn.MatchString(e.Name()) {
				continue
			}
			file, err := filepath.EvalSymlinks(filepath.Join(dir, e.Name()))
			if err == nil && sums[file] == "" {
				sums[file], err = cache.HashFile(file)
			}
			if err != nil {
				return ""
			}
		}
	}
	if len(sums) == 0 {
		return ""
	}
	var lines []string
	for file, sum := range sums {
		lines = append(lines, filepath.Base(file)+" "+sum+"\n")
	}
	slices.Sort(lines)
	return fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Join(lines, ""))))
}

// itsOwn matches the names of llama.cpp's libraries.
var itsOwn = regexp.MustCompile(`^((lib)?(llama|ggml|mtmd).*\.dll|lib(llama|ggml|mtmd).*\.(so.*|dylib))$`)

// flag is a command-line option of llama.cpp, with its value if it has one.
type flag []string

func arguments(flags []flag) []string { return slices.Concat(flags...) }

// options maps the options in a program's help to the rest of their lines; nil: the help could not be parsed.
type options map[string]string

// listed parses a program's help. Lines begin with all names of an option.
func listed(help []string) options {
	known := options{}
	for _, line := range help {
		fields := strings.Fields(line)
		for i, f := range fields {
			if !strings.HasPrefix(f, "-") {
				break
			}
			name, more := strings.CutSuffix(f, ",")
			known[name] = strings.Join(fields[i+1:], " ")
			if !more {
				break
			}
		}
	}
	if _, ok := known["--model"]; !ok {
		return nil
	}
	return known
}

// harmless lists options that may be dropped: a program that lacks them does not have what they switch off.
var harmless = []string{"-dev", "-fit", "--offline", "--log-colors", "-lv", "--no-cache-prompt", "-cram", "--no-webui",
	"-no-cnv", "--no-warmup", "--simple-io", "--no-escape"}

// fitted adapts options to a version of llama.cpp. The error names an option that is needed and missing.
func (i identity) fitted(flags []flag) (out []flag, err error) {
	if i.options == nil {
		return flags, nil // the program itself will refuse unknown ones
	}
	_, modes := i.options["--load-mode"]
	for _, f := range flags {
		rest, ok := i.options[f[0]]
		old := f[0] == "-fa" && ok && !strings.Contains(rest, "auto") // a switch in old versions
		switch {
		case f[0] == noMmap && !ok && modes:
			out = append(out, flag{"--load-mode", "none"})
		case old && f[1] == "on":
			out = append(out, f[:1])
		case old && f[1] == "off":
		case ok && !old:
			out = append(out, f)
		case !slices.Contains(harmless, f[0]):
			return nil, i.program.Unfit("%s is too old: it does not support %s", i.path, strings.Join(f, " "))
		}
	}
	return out, nil
}
