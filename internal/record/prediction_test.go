package record

import (
	"reflect"
	"testing"

	"llmparity/internal/fault"
)

func TestPredictionsAndRisksRoundTrip(t *testing.T) {
	w := made(t)
	p := Prediction{Cell: 2, Source: "gguf", Setup: map[string]string{"context": "512"}, TokenB: 9,
		Parts: []Predicted{{Name: "model_weights", Low: 1, Best: 2, High: 3, DType: "f32", Method: "its tensors",
			Confidence: "high"}}}
	r := Risk{Cell: 1, Level: RiskHigh, Refused: true, Reasons: []string{"too much"},
		Places: []Place{{Name: "ram", Need: 5, High: 6, Free: 4, Level: RiskHigh, How: "counted"}}}
	w.Cell(Cell{ID: 1})
	w.Cell(Cell{ID: 2})
	w.Predict(p)
	w.Risk(r)
	got := ended(t, w, OK)
	if !reflect.DeepEqual(got.Predictions, map[int]Prediction{2: p}) ||
		!reflect.DeepEqual(got.Risks, map[int]Risk{1: r}) {
		t.Errorf("read %+v and %+v", got.Predictions, got.Risks)
	}
	if part, ok := got.Predictions[2].Part("model_weights"); !ok || part.Best != 2 {
		t.Errorf("part: %+v", part)
	}
}

func TestRefusedCellIsAnAttempt(t *testing.T) {
	w := made(t, resumed)
	w.Refuse(resumed, SetUp, fault.New(fault.NoPython, "", "no Python"))
	r := ended(t, w, Failed)
	a := r.Attempts[0]
	if a.Status != Refused || a.Class != SetUp || a.Fault != fault.NoPython || a.Error != "no Python" {
		t.Errorf("%+v", a)
	}
}
