package plan_test

import (
	"reflect"
	"strings"
	"testing"

	"llmparity/assets/plans"
	"llmparity/internal/fault"
	"llmparity/internal/plan"
)

func TestDefaultPlanSurvivesARoundTrip(t *testing.T) {
	p, err := plan.Parse(plans.Default, "default.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if p.Repetitions != 6 || p.Warmup.Launches != 1 || p.MaxTokens != 64 || len(p.Engines) != 2 {
		t.Errorf("the default plan is %+v", p)
	}
	text, err := p.YAML()
	if err != nil {
		t.Fatal(err)
	}
	again, err := plan.Parse(text, "resolved")
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	if !reflect.DeepEqual(p, again) {
		t.Errorf("written and read again: %+v, want %+v", again, p)
	}
}

func TestBadPlansAreNamedWithTheirPlace(t *testing.T) {
	good := string(plans.Default)
	for _, c := range []struct{ old, new, want string }{
		{"max_tokens: 64", "max_token: 64", "p.yaml line 7: unknown field"},
		{"max_tokens: 64", "max_tokens: many", "p.yaml line 7:"},
		{"max_tokens: 64", "max_tokens: 0", "max_tokens: 0, at least 1"},
		{"timeout: 3m ", "timeout: 3 ", "not a duration"},
		{"name: default", "name: ../x", "becomes a folder's name"},
		{"[webllm, llamacpp]", "[webllm, webllm]", "webllm is named twice"},
		{"[webllm, llamacpp]", "[webllm", "p.yaml line"},
		{"temperature: 0", "temperature: 0.7", "temperature: 0.7"},
		{"thread: page", "thread: main", "thread: \"main\", use page or worker"},
		{"watchdog: 1m", "watchdog: 1ms", "watchdog: 1ms, at least 1s"},
	} {
		text := strings.Replace(good, c.old, c.new, 1)
		if text == good {
			t.Fatalf("%q is not in the default plan", c.old)
		}
		_, err := plan.Parse([]byte(text), "p.yaml")
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want one line with %q", c.new, err, c.want)
		}
		if fault.Code(err) != int(fault.Usage) {
			t.Errorf("%s: exit code %d", c.new, fault.Code(err))
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(plans.Default)
	f.Add([]byte("a: &a [*a]\nname: x"))
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := plan.Parse(text, "p.yaml")
		if err == nil && p.Validate() != nil {
			t.Error("an accepted plan is not valid")
		}
	})
}
