package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"llmparity/browser/find"
	kitcheck "llmparity/internal/kit/check"
)

// A tutorial's commands run in the order of its page, with the exit codes and the output that it claims. Numbers may be
// others, … stands for anything, and line breaks do not count. In thorough tests, a page's first run has all its
// launches, but no warm-up where it has a plan; all other runs have one launch, which shows no intervals.
func TestTutorials(t *testing.T) {
	browserTest(t)
	t.Setenv(find.Variable, ownChrome(t))
	for _, name := range []string{"first-comparison", "first-gate"} {
		t.Run(name, func(t *testing.T) {
			text := readFile(t, filepath.Join("../../docs/tutorial", name+".md"))
			dir := shortDir(t)
			var printed string
			ran, runs := 0, 0
			for _, m := range regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```$").FindAllStringSubmatch(text, -1) {
				switch m[1] {
				case "yaml":
					put(t, dir, "plan.yaml", m[2]+"warmup: {launches: 0, tokens: 1}\n")
				case "sh":
					printed = ""
					for line := range strings.Lines(m[2]) {
						if words := commandLines(line); len(words) > 0 {
							command := words[0]
							if command[0] == "run" {
								if runs++; runs > 1 || !kitcheck.Slow {
									command = append(command, "--repetitions", "1")
								}
							}
							printed += follow(t, dir, line, command)
							ran++
						}
					}
				case "text":
					if !kitcheck.Slow {
						continue
					}
					claims(t, m[2], printed)
				}
			}
			if ran < 4 {
				t.Errorf("only %d commands", ran)
			}
		})
	}
}

// ownChrome copies the browser: PSS counts only a part of files that another browser maps too.
func ownChrome(t *testing.T) string {
	t.Helper()
	chrome, err := find.Chrome("")
	check(t, err)
	program, err := filepath.EvalSymlinks(chrome)
	check(t, err)
	// Debian's /usr/bin/chromium is a script.
	for _, folder := range []string{filepath.Dir(program), filepath.Join("/usr/lib", filepath.Base(program))} {
		if there(filepath.Join(folder, "icudtl.dat")) {
			dir := filepath.Join(t.TempDir(), "chrome")
			check(t, os.CopyFS(dir, os.DirFS(folder)))
			return filepath.Join(dir, filepath.Base(program))
		}
	}
	return chrome
}

// follow runs a command line of a tutorial. Its comment has the exit codes that it may end with; without one it is 0.
func follow(t *testing.T, dir, line string, words []string) string {
	t.Helper()
	cmd := program(t, words...)
	cmd.Dir = dir
	stdout, stderr, code := output(t, cmd)
	allowed := []int{0}
	if _, comment, ok := strings.Cut(line, "# exit code "); ok {
		allowed = nil
		for _, n := range regexp.MustCompile(`\d+`).FindAllString(comment, -1) {
			code, err := strconv.Atoi(n)
			check(t, err)
			allowed = append(allowed, code)
		}
	}
	if !slices.Contains(allowed, code) {
		t.Fatalf("%s: exit code %d\n%s%s", strings.TrimSpace(line), code, stdout, stderr)
	}
	return stdout + stderr
}

// claims looks for the lines of a tutorial's output in what was printed, one after another.
func claims(t *testing.T, want, printed string) {
	t.Helper()
	rest := strings.ReplaceAll(strings.Join(strings.Fields(printed), " "), "%!", "%") // ! marks noise
	for line := range strings.Lines(want) {
		pattern := regexp.QuoteMeta(strings.Join(strings.Fields(line), " "))
		pattern = strings.ReplaceAll(pattern, "…", ".*?")
		pattern = regexp.MustCompile(`\d[\d,]*(\\\.\d+)?`).ReplaceAllString(pattern, `[\d,.]+`)
		at := regexp.MustCompile(pattern).FindStringIndex(rest)
		if at == nil {
			t.Errorf("the output lacks %q:\n%s", line, fmt.Sprint(printed))
			return
		}
		rest = rest[at[1]:]
	}
}
