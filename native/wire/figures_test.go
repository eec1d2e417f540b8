package wire_test

import (
	"encoding/json"
	"maps"
	"testing"

	"llmparity/native/wire"
)

func TestFigures(t *testing.T) {
	for text, want := range map[string]map[string]float64{
		``: {}, `null`: {}, `{}`: {},
		`{"n":4,"ms":0.5,"cache":null,"name":"x","list":[1],"yes":true}`: {"n": 4, "ms": 0.5},
	} {
		if got, err := wire.Figures(json.RawMessage(text)); err != nil || !maps.Equal(got, want) {
			t.Errorf("%s: %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{`[1]`, `7`, `{"n":`, `"n"`} {
		if got, err := wire.Figures(json.RawMessage(text)); err == nil {
			t.Errorf("%s is taken for %v", text, got)
		}
	}
}
