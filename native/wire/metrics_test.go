package wire_test

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"llmparity/native/wire"
)

func TestMetrics(t *testing.T) {
	page := `# HELP x:running Requests.
# TYPE x:running gauge
x:running{model_name="a \"b\", c\\d\ne",rank="0"} 2.0
x:running{model_name="z",rank="1",} 1e3 1700000000123

plain 4
spaced  {  le = "+Inf" , b="}" }   -7.25
x:ratio NaN
unwanted 9
x:most +Inf
x:seconds_bucket{le="0.5"} 8 # {trace_id="abc"} 0.43 1700000000.1
# EOF
`
	want := []wire.Metric{
		{Name: "x:running", Labels: map[string]string{"model_name": "a \"b\", c\\d\ne", "rank": "0"}, Value: 2},
		{Name: "x:running", Labels: map[string]string{"model_name": "z", "rank": "1"}, Value: 1000},
		{Name: "plain", Labels: map[string]string{}, Value: 4},
		{Name: "spaced", Labels: map[string]string{"le": "+Inf", "b": "}"}, Value: -7.25},
		{Name: "x:most", Labels: map[string]string{}, Value: math.Inf(1)},
		{Name: "x:seconds_bucket", Labels: map[string]string{"le": "0.5"}, Value: 8},
	}
	for name, text := range map[string]string{"lines": page,
		"carriage returns": strings.ReplaceAll(page, "\n", "\r\n")} {
		got, err := wire.Metrics(strings.NewReader(text), func(name string) bool { return name != "unwanted" })
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if len(got) != 7 || !math.IsNaN(got[4].Value) {
			t.Fatalf("%s: %+v", name, got)
		}
		if got = append(got[:4], got[5:]...); !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n%+v, want\n%+v", name, got, want)
		}
	}
}

func TestInvalidMetrics(t *testing.T) {
	every := func(string) bool { return true }
	for _, text := range []string{"a 1\nb", "a 1\n{x=\"1\"} 2", "a{x=\"1\" 2", "a{x=\"1", "a{x=\"1\"}", "a one",
		"<html><body>404</body> 1"} {
		if got, err := wire.Metrics(strings.NewReader(text), every); err == nil ||
			!strings.Contains(err.Error(), fmt.Sprintf("line %d", 1+strings.Count(text, "\n"))) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}
