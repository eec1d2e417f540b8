package engine_test

import (
	"strings"
	"testing"

	"llmparity/internal/engine"
	"llmparity/internal/engine/enginetest"
	"llmparity/internal/kit/fault"
	"llmparity/internal/record"
	"llmparity/internal/record/ran"
)

func TestAskedSaysWhatWasTried(t *testing.T) {
	d := record.Device{Class: record.OpenGLAdapter, Name: "intel", Asked: "gpu", Detail: map[string]string{}}
	d.SetTried([]string{"no flags: intel (opengl-adapter, openGLES)", "a window: no display"})
	_, err := engine.Asked(d, false)
	enginetest.OneLine(t, err, fault.Fallback, record.Fallback, "asks for gpu, but the engine runs on opengl-adapter intel",
		"(tried no flags: intel (opengl-adapter, openGLES); a window: no display)")
	w, err := engine.Asked(d, true)
	if err != nil || w == nil || !strings.Contains(w.Text, "a window: no display") {
		t.Errorf("%v, %v", w, err)
	}
}

func TestAskedAlso(t *testing.T) {
	rows := []ran.Row{ran.As("dtype", "f16", "f16", "x"),
		ran.As("power preference", "low-power", "", "unread"), ran.With("threads", 4, 1, "a log")}
	warnings, err := engine.AskedAlso(rows, false)
	enginetest.OneLine(t, err, fault.Fallback, record.Fallback, "asks for threads 4", "ran with 1 (a log)")
	if len(warnings) != 1 || !strings.Contains(warnings[0].Text, "is unknown: unread") {
		t.Errorf("%+v", warnings)
	}
	warnings, err = engine.AskedAlso(rows, true)
	if err != nil || len(warnings) != 2 || warnings[1].Code != "fallback" {
		t.Errorf("%+v, %v", warnings, err)
	}
}
