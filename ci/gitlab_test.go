package ci_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"llmparity/internal/kit/check"
)

// gitlabInputs are the first document of the template, gitlabJob the second's only job, with the keys that GitLab has.
type gitlabInputs struct {
	Spec struct {
		Inputs map[string]struct {
			Description string `yaml:"description"`
			Type        string `yaml:"type"`
			Default     any    `yaml:"default"`
		} `yaml:"inputs"`
	} `yaml:"spec"`
}

type gitlabJob struct {
	Stage string `yaml:"stage"`
	Image struct {
		Name       string   `yaml:"name"`
		Entrypoint []string `yaml:"entrypoint"`
	} `yaml:"image"`
	Tags    any    `yaml:"tags"`
	Timeout string `yaml:"timeout"`
	Rules   []struct {
		If string `yaml:"if"`
	} `yaml:"rules"`
	Variables map[string]string `yaml:"variables"`
	Cache     struct {
		Key   string   `yaml:"key"`
		Paths []string `yaml:"paths"`
	} `yaml:"cache"`
	Script       []string `yaml:"script"`
	AllowFailure struct {
		ExitCodes []int `yaml:"exit_codes"`
	} `yaml:"allow_failure"`
	Artifacts struct {
		When    string            `yaml:"when"`
		Paths   []string          `yaml:"paths"`
		Exclude []string          `yaml:"exclude"`
		Reports map[string]string `yaml:"reports"`
	} `yaml:"artifacts"`
}

var interpolation = regexp.MustCompile(`\$\[\[ inputs\.(\w+) \]\]`)

// template reads the template with some inputs set, as GitLab does: texts are replaced before YAML is read.
func template(t *testing.T, with map[string]string) (in gitlabInputs, j gitlabJob) {
	t.Helper()
	text := read(t, "gitlab.yml")
	head, body, ok := strings.Cut(text, "\n---\n")
	if !ok {
		t.Fatal("inputs are in a document of their own")
	}
	check.Err(t, yaml.UnmarshalWithOptions([]byte(head), &in, yaml.Strict()))
	used := map[string]bool{}
	body = interpolation.ReplaceAllStringFunc(body, func(of string) string {
		name := interpolation.FindStringSubmatch(of)[1]
		one, known := in.Spec.Inputs[name]
		if !known {
			t.Errorf("there is no input %s", name)
		}
		used[name] = true
		if v, set := with[name]; set {
			return v
		}
		if one.Type == "array" {
			return "[]"
		}
		v, isText := one.Default.(string)
		if !isText {
			t.Errorf("input %s has no default", name)
		}
		if v == "" {
			return `""`
		}
		return v
	})
	for name := range in.Spec.Inputs {
		if !used[name] {
			t.Errorf("input %s is not used", name)
		}
	}
	jobs := map[string]gitlabJob{}
	check.Err(t, yaml.UnmarshalWithOptions([]byte(body), &jobs, yaml.Strict()))
	if len(jobs) != 1 {
		t.Fatalf("%d jobs", len(jobs))
	}
	return in, jobs["llmparity"]
}

func TestTemplateIsValid(t *testing.T) {
	_, j := template(t, map[string]string{"image": "registry.example/llmparity:1"})
	if len(j.Script) == 0 || j.Image.Name != "registry.example/llmparity:1" || len(j.Rules) != 2 ||
		j.Artifacts.When != "always" || j.Artifacts.Reports["junit"] == "" ||
		!slices.Equal(j.AllowFailure.ExitCodes, []int{5}) {
		t.Errorf("%+v", j)
	}
	// All lines are one script. What it takes must be set: by the job, by itself, or by GitLab.
	script := strings.Join(j.Script, "\n")
	parses(t, "sh", "script", script)
	predefined := []string{"CI_MERGE_REQUEST_TARGET_BRANCH_NAME", "CI_MERGE_REQUEST_IID", "CI_API_V4_URL",
		"CI_PROJECT_ID", "CI_COMMIT_SHA", "CI_SERVER_PROTOCOL", "CI_SERVER_HOST", "CI_SERVER_PORT",
		"CI_PROJECT_PATH", "CI_RUNNER_ID",
		"CI_PIPELINE_SOURCE", "CI_COMMIT_BRANCH", "CI_DEFAULT_BRANCH", "LLMPARITY_TOKEN", "LLMPARITY_SOURCE"}
	for _, m := range regexp.MustCompile(`\$\{?([A-Z]\w+)`).FindAllStringSubmatch(script+j.Cache.Key+j.Rules[0].If+
		j.Rules[1].If, -1) {
		if _, ok := j.Variables[m[1]]; !ok && !slices.Contains(predefined, m[1]) {
			t.Errorf("$%s is not set", m[1])
		}
	}
}
