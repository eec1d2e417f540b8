package ci_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"llmparity/internal/kit/check"
)

// action is a composite action, with the keys that GitHub documents.
type action struct {
	Name        string `yaml:"name"`
	Description string `yaml:"description"`
	Inputs      map[string]struct {
		Description string  `yaml:"description"`
		Required    bool    `yaml:"required"`
		Default     *string `yaml:"default"`
	} `yaml:"inputs"`
	Outputs map[string]struct {
		Description string `yaml:"description"`
		Value       string `yaml:"value"`
	} `yaml:"outputs"`
	Runs struct {
		Using string `yaml:"using"`
		Steps []step `yaml:"steps"`
	} `yaml:"runs"`
}

type step struct {
	Name  string            `yaml:"name"`
	ID    string            `yaml:"id"`
	If    string            `yaml:"if"`
	Shell string            `yaml:"shell"`
	Run   string            `yaml:"run"`
	Uses  string            `yaml:"uses"`
	Env   map[string]string `yaml:"env"`
	With  map[string]string `yaml:"with"`
}

func theAction(t *testing.T) (a action) {
	t.Helper()
	check.Err(t, yaml.UnmarshalWithOptions([]byte(read(t, "github/action.yml")), &a, yaml.Strict()))
	return a
}

// documented are the inputs of others' actions that their documentation names, as far as they are of use here.
var documented = map[string][]string{
	"actions/setup-go@v5":        {"go-version", "go-version-file", "check-latest", "cache", "cache-dependency-path"},
	"actions/setup-node@v4":      {"node-version", "node-version-file", "cache", "cache-dependency-path"},
	"actions/cache@v4":           {"path", "key", "restore-keys", "fail-on-cache-miss", "lookup-only"},
	"actions/upload-artifact@v4": {"name", "path", "if-no-files-found", "retention-days", "overwrite"},
}

// values are the parts of expressions that have a value: inputs.plan, steps.run.outputs.code.
var (
	expressions = regexp.MustCompile(`\$\{\{(.*?)\}\}`)
	values      = regexp.MustCompile(`'[^']*'|[A-Za-z_]\w*(?:\.[\w-]+)+`)
	written     = regexp.MustCompile(`echo "(\w+)=`)
)

func TestActionIsValid(t *testing.T) {
	a := theAction(t)
	if a.Name == "" || a.Description == "" || a.Runs.Using != "composite" {
		t.Errorf("%+v", a)
	}
	used := map[string]bool{}
	known := map[string][]string{} // the outputs of earlier steps
	valid := func(where, text string) {
		for _, v := range values.FindAllString(text, -1) {
			p := strings.Split(v, ".")
			switch {
			case v[0] == '\'':
			case p[0] == "inputs":
				if _, ok := a.Inputs[p[1]]; !ok || len(p) != 2 {
					t.Errorf("%s: there is no %s", where, v)
				}
				used[p[1]] = true
			case p[0] == "steps":
				outputs, ok := known[p[1]]
				given := len(p) == 4 && p[2] == "outputs" && slices.Contains(outputs, p[3])
				if !ok || !given && !(len(p) == 3 && p[2] == "outcome") {
					t.Errorf("%s: no earlier step gives %s", where, v)
				}
			case p[0] != "github" && p[0] != "runner":
				t.Errorf("%s: no context has %s", where, v)
			}
		}
	}
	for i, s := range a.Runs.Steps {
		where := fmt.Sprintf("step %d", i+1)
		if (s.Uses == "") == (s.Run == "") || (s.Run == "") != (s.Shell == "") {
			t.Errorf("%s either uses an action, or runs a script in a named shell", where)
		}
		if strings.Contains(s.Run, "${{") {
			t.Errorf("%s: an expression in a script lets a branch's name become a command", where)
		}
		valid(where, s.If)
		for _, all := range []map[string]string{s.Env, s.With} {
			for _, text := range all {
				for _, e := range expressions.FindAllStringSubmatch(text, -1) {
					valid(where, e[1])
				}
			}
		}
		if inputs, ok := documented[s.Uses]; s.Uses != "" && !ok {
			t.Errorf("%s uses %s, and not a version of a known action", where, s.Uses)
		} else {
			for name := range s.With {
				if !slices.Contains(inputs, name) {
					t.Errorf("%s: %s has no input %s", where, s.Uses, name)
				}
			}
		}
		if s.Run != "" {
			parses(t, s.Shell, where, s.Run)
			for _, name := range regexp.MustCompile(`\$\{?([A-Z]+)\b`).FindAllStringSubmatch(s.Run, -1) {
				if _, ok := s.Env[name[1]]; !ok {
					t.Errorf("%s: $%s is not set", where, name[1])
				}
			}
		}
		if s.ID != "" {
			known[s.ID] = []string{}
			for _, m := range written.FindAllStringSubmatch(s.Run, -1) {
				known[s.ID] = append(known[s.ID], m[1])
			}
		}
	}
	for name, in := range a.Inputs {
		if !used[name] || in.Description == "" || in.Default == nil {
			t.Errorf("input %s is not used, or has no description or default", name)
		}
	}
	for name, out := range a.Outputs {
		if out.Description == "" || !expressions.MatchString(out.Value) {
			t.Errorf("output %s", name)
		}
		valid("output "+name, out.Value)
	}
}

// expression evaluates those of the action: paths, texts, ==, !=, && and always().
func expression(t *testing.T, text string, of map[string]string) string {
	t.Helper()
	truth := func(b bool) string { return map[bool]string{true: "true"}[b] }
	for _, part := range strings.Split(text, "&&") {
		part = strings.TrimSpace(part)
		var holds bool
		if left, right, ok := strings.Cut(part, "=="); ok {
			holds = expression(t, left, of) == expression(t, right, of)
		} else if left, right, ok := strings.Cut(part, "!="); ok {
			holds = expression(t, left, of) != expression(t, right, of)
		} else if part == "always()" {
			holds = true
		} else if strings.HasPrefix(part, "'") {
			return strings.Trim(part, "'")
		} else if values.MatchString(part) {
			return of[part] // what is not set is empty
		} else {
			t.Fatalf("%q is an expression that this test does not know", part)
		}
		if !holds {
			return ""
		}
	}
	return truth(true)
}

// filled is a text with the values of its expressions.
func filled(t *testing.T, text string, of map[string]string) string {
	t.Helper()
	return expressions.ReplaceAllStringFunc(text, func(e string) string {
		return expression(t, strings.TrimSpace(e[3:len(e)-2]), of)
	})
}

// The guide gives the action inputs that it has.
func TestGuideUsesTheAction(t *testing.T) {
	a := theAction(t)
	uses := regexp.MustCompile(`(?m)ci/github@COMMIT\n +with: (\{.*\})$`).FindStringSubmatch(read(t, "../docs/howto/gate-in-ci.md"))
	var with map[string]string
	if len(uses) != 2 {
		t.Fatal("the guide does not use it")
	}
	check.Err(t, yaml.Unmarshal([]byte(uses[1]), &with))
	for name := range with {
		if _, ok := a.Inputs[name]; !ok || len(with) < 3 {
			t.Errorf("the action has no input %s", name)
		}
	}
}
