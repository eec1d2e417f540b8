package bisect

import (
	"bytes"
	"cmp"
	"context"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"llmparity/internal/kit/fault"
	"llmparity/internal/kit/nearest"
	"llmparity/internal/models/npm"
)

// Axis is what versions are of.
type Axis struct {
	Name   string
	Engine string // that runs it
	Flag   string // of run, for a version's file
	Number string // of run, for a version's number; empty: a file is needed
	npm    string // the package whose versions are known
}

// Axes are those that can be searched.
var Axes = []Axis{
	{Name: "webllm", Engine: "webllm", Flag: "webllm-bundle", Number: "webllm-version", npm: "@mlc-ai/web-llm"},
	{Name: "model-lib", Engine: "webllm", Flag: "model-lib"},
	{Name: "chrome", Engine: "webllm", Flag: "chrome"},
	{Name: "llamacpp", Engine: "llamacpp", Flag: "llama-server"},
	{Name: "ollama", Engine: "ollama", Flag: "ollama"},
	{Name: gitAxis, Engine: "webllm", Flag: "webllm-bundle"},
}

// gitAxis has commits of the current folder's repository, of which a command makes WebLLM builds.
const gitAxis = "git"

// Names lists the axes.
func Names() (out []string) {
	for _, a := range Axes {
		out = append(out, a.Name)
	}
	return out
}

// AxisNamed finds an axis.
func AxisNamed(name string) (Axis, error) {
	for _, a := range Axes {
		if a.Name == name {
			return a, nil
		}
	}
	return Axis{}, fault.New(fault.Usage, strings.TrimSpace(nearest.Question(name, Names())+" use one of "+
		strings.Join(Names(), ", ")), "there is no axis %q", name)
}

// Place is where a version's file is in the text of --at.
const Place = "{}"

// Between lists the versions from good to bad: those that are given, or those that git, the pattern's files, or npm
// have.
func (a Axis) Between(ctx context.Context, good, bad, at string, given []string) ([]string, error) {
	var all []string
	var err error
	switch {
	case good == bad:
		return nil, fault.New(fault.Usage, "name two versions", "--good and --bad are the same")
	case given != nil:
		all = given
	case a.Name == gitAxis:
		return commits(ctx, good, bad)
	case at != "":
		all = numbered(files(at))
	case a.npm != "":
		if all, err = npm.Versions(ctx, a.npm); err != nil {
			return nil, err
		}
		all = numbered(all)
	}
	from, to := slices.Index(all, good), slices.Index(all, bad)
	if from >= 0 && to >= 0 && from > to { // newer versions are good
		slices.Reverse(all)
		from, to = len(all)-1-from, len(all)-1-to
	}
	if from < 0 || to < 0 {
		missing := good
		if from >= 0 {
			missing = bad
		}
		return nil, fault.New(fault.Usage, "list all with --versions, from good to bad, or name their files with --at",
			"version %s is not among the versions: %s", missing, cmp.Or(strings.Join(all, ", "), "none are known"))
	}
	return all[from : to+1], nil
}

// files are the versions of which a pattern's file is there.
func files(at string) (out []string) {
	before, after, _ := strings.Cut(at, Place)
	if strings.ContainsAny(before+after, `*?[\`) {
		return nil
	}
	found, _ := filepath.Glob(before + "*" + after) // the pattern is valid
	for _, path := range found {
		out = append(out, strings.TrimSuffix(strings.TrimPrefix(path, before), after))
	}
	return out
}

var digits = regexp.MustCompile(`\d+|\D+`)

// numbered sorts versions by the numbers in them, and leaves out those before a release (0.2.80-rc1).
func numbered(all []string) []string {
	out := slices.DeleteFunc(slices.Clone(all), func(v string) bool { return strings.Contains(v, "-") })
	slices.SortFunc(out, func(a, b string) int {
		return slices.CompareFunc(digits.FindAllString(a, -1), digits.FindAllString(b, -1), func(x, y string) int {
			n, failed := strconv.Atoi(x)
			m, failing := strconv.Atoi(y)
			if failed == nil && failing == nil {
				return cmp.Compare(n, m)
			}
			return strings.Compare(x, y)
		})
	})
	return out
}

// commits lists those on the first-parent line from good to bad.
func commits(ctx context.Context, good, bad string) ([]string, error) {
	git := func(args ...string) ([]string, error) {
		var said bytes.Buffer
		cmd := exec.CommandContext(ctx, "git", args...)
		cmd.Stderr = &said
		out, err := cmd.Output()
		if err != nil {
			return nil, fault.New(fault.Usage, "run it in the repository, and name commits", "git %s: %s", args[0],
				fault.OneLine(cmp.Or(strings.TrimSpace(said.String()), err.Error())))
		}
		return strings.Fields(string(out)), nil
	}
	first, err := git("rev-parse", "--verify", "--end-of-options", good+"^{commit}")
	if err != nil {
		return nil, err
	}
	last, err := git("rev-parse", "--verify", "--end-of-options", bad+"^{commit}")
	if err != nil {
		return nil, err
	}
	after, err := git("rev-list", "--first-parent", "--reverse", first[0]+".."+last[0])
	if err != nil {
		return nil, err
	}
	if len(after) == 0 {
		return nil, fault.New(fault.Usage, "--good must be before --bad", "there is no commit from %s to %s", good, bad)
	}
	return append(first, after...), nil
}
