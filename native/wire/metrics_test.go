package wire_test

import (
	"bytes"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

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
x:most +Inf
x:seconds_bucket{le="0.5"} 8 # {trace_id="abc"} 0.43 1700000000.1
unwanted{broken 9
# EOF
`
	want := []wire.Metric{
		{Name: "x:running", Labels: []wire.Label{{Name: "model_name", Value: "a \"b\", c\\d\ne"},
			{Name: "rank", Value: "0"}}, Value: 2},
		{Name: "x:running", Labels: []wire.Label{{Name: "model_name", Value: "z"}, {Name: "rank", Value: "1"}},
			Value: 1000},
		{Name: "plain", Value: 4},
		{Name: "spaced", Labels: []wire.Label{{Name: "le", Value: "+Inf"}, {Name: "b", Value: "}"}}, Value: -7.25},
		{Name: "x:most", Value: math.Inf(1)},
		{Name: "x:seconds_bucket", Labels: []wire.Label{{Name: "le", Value: "0.5"}}, Value: 8},
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
	for text, want := range map[string]string{
		"a 1\nb":                   "line 2: no name and value",
		"a 1\n\n{x=\"1\"} 2":       "line 3: no name",
		"a{x=\"1\" 2":              "line 1: invalid labels",
		"a{x=1} 2":                 "line 1: invalid labels",
		"a{x=\"1":                  "line 1: unterminated label value",
		"a{x=\"1\"}":               "line 1: no value",
		"a one":                    "line 1: invalid value",
		"<html><body>404</body> 1": "line 1: invalid name",
	} {
		if _, err := wire.Metrics(strings.NewReader(text), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	if _, err := wire.Metrics(iotest.ErrReader(fmt.Errorf("cut")), nil); err == nil || err.Error() != "cut" {
		t.Errorf("a read error: %v", err)
	}
	if _, err := wire.Metrics(bytes.NewReader(make([]byte, 17<<20)), nil); err == nil ||
		!strings.Contains(err.Error(), "16 MiB") {
		t.Errorf("a huge page: %v", err)
	}
}

func FuzzMetrics(f *testing.F) {
	f.Add([]byte("# TYPE a gauge\na:b{x=\"\\\"\\n\",y=\"\"} 1 2\nc NaN\n"))
	f.Add([]byte("a{x=\"1\" , } +Inf # {t=\"u\"} 1\n"))
	f.Fuzz(func(t *testing.T, page []byte) {
		series, err := wire.Metrics(bytes.NewReader(page), nil)
		if err != nil {
			return
		}
		// Writing the series and parsing them again gives the same series.
		var again strings.Builder
		for _, m := range series {
			again.WriteString(m.Name + "{")
			for _, l := range m.Labels {
				fmt.Fprintf(&again, "%s=\"%s\",", l.Name,
					strings.NewReplacer("\\", "\\\\", "\"", "\\\"", "\n", "\\n").Replace(l.Value))
			}
			fmt.Fprintf(&again, "} %v\n", m.Value)
		}
		got, err := wire.Metrics(strings.NewReader(again.String()), nil)
		if err != nil || len(got) != len(series) {
			t.Fatalf("%v: %d series, %d the second time: %q", err, len(series), len(got), again.String())
		}
		for i, m := range series {
			same := m.Value == got[i].Value || math.IsNaN(m.Value) && math.IsNaN(got[i].Value)
			if m.Name != got[i].Name || !same || len(m.Labels) != len(got[i].Labels) {
				t.Fatalf("%+v, then %+v", m, got[i])
			}
			for k, l := range m.Labels {
				if got[i].Labels[k] != l {
					t.Fatalf("%+v, then %+v", l, got[i].Labels[k])
				}
			}
		}
	})
}
