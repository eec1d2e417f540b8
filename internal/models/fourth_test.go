package models_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"llmparity/internal/engine"
	"llmparity/internal/kinds"
	"llmparity/internal/kit/check"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models"
	"llmparity/internal/predict/estimate"
	"llmparity/internal/predict/inspect"
	"llmparity/native/program"
)

// plain is an engine that accepts every model that it is asked about.
type plain struct{ engine.Engine }

func (plain) Name() string { return "toys" }

func (plain) Caps() engine.Caps { return engine.Caps{} }

func (plain) Check(context.Context, models.Model) error { return nil }

// A format is one row of the table: with a fourth, models are found, described, sized and refused by it.
func TestFourthFormat(t *testing.T) {
	t.Cleanup(models.RegisterToy())
	hub := t.TempDir()
	t.Setenv("HF_HUB_CACHE", hub)
	dir := filepath.Join(hub, "models--me--toys", "snapshots", "1")
	check.Err(t, os.MkdirAll(dir, 0o700))
	path := filepath.Join(dir, "one.toy")
	check.Err(t, models.WriteToy(path))

	var f models.Finder
	for _, name := range []string{path, "hf:me/toys", "me/toys", "hf:me/toys/one.toy"} {
		m, err := f.Find(t.Context(), name, 0)
		check.Err(t, err)
		if m.Format != models.Toy || m.Path != path || m.Context != 256 || m.Reads() || m.Converts() || m.Reference() {
			t.Errorf("%s: %+v", name, m)
		}
	}
	if models.Listed("absent.toy") || models.OfHub("me/absent.toy") {
		t.Error("a toy's file is taken for a name")
	}
	if all := models.AllLocal(); len(all) != 1 || all[0].Name != "hf:me/toys/one.toy" {
		t.Errorf("here: %+v", all)
	}
	sum, err := models.SHA256(t.Context(), path)
	m, err2 := f.Find(t.Context(), path, 0)
	if err != nil || err2 != nil || sum != m.SHA256 {
		t.Errorf("%s and %s: %v, %v", sum, m.SHA256, err, err2)
	}
	if _, err := models.Tokenizer(m); err == nil {
		t.Error("its vocabulary was read")
	}
	if _, _, err := models.Convertible(path); err == nil || !strings.Contains(err.Error(), "there is no converter") {
		t.Errorf("converted: %v", err)
	}
	for what, err := range map[string]error{
		"sizes of nothing": second(models.Sizes(filepath.Join(hub, "none"))),
		"info of nothing":  second(inspect.Open(t.Context(), hub, kinds.All, nil)),
		"llama.cpp":        program.CheckGGUF("llama.cpp", m),
	} {
		if want := map[bool]string{true: "a toy model", false: "a toy file"}[what == "llama.cpp"]; err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", what, err)
		}
	}
	theirs := &engine.Kind{Name: "toys", Title: "Toys", Formats: []string{models.Toy},
		Runs: func(dtype string) string { return "plays it in " + dtype },
		New:  func(string, engine.Config, engine.Settings) engine.Engine { return plain{} }}
	engines(t, path, m, theirs)
	predictions(t, path)
}

// engines checks what engines do with a toy, and what the one that runs toys does with a GGUF.
func engines(t *testing.T, path string, m models.Model, theirs *engine.Kind) {
	all := append(slices.Clip(kinds.All), theirs)
	choice := engine.NewChoice(all)
	info, err := inspect.Open(t.Context(), path, all, choice)
	check.Err(t, err)
	if info.Kind != "toy-model" || info.Engines["toys"].Can != "plays it in f32" {
		t.Errorf("%+v", info)
	}
	for _, k := range kinds.All {
		if k.Runs == nil {
			continue
		}
		if a := info.Engines[k.Name]; !strings.HasSuffix(a.Cannot, "; there is no converter") {
			t.Errorf("%s: %+v", k.Name, a)
		}
		err := k.Accepts(t.Context(), choice.Engine(k.Name), m).Err()
		if fault.Of(err) != fault.BadModel || !strings.Contains(err.Error(), "is a toy model") {
			t.Errorf("%s: %v", k.Name, err)
		}
	}
	m.Format = models.GGUF
	if err := theirs.Accepts(t.Context(), plain{}, m).Err(); err == nil ||
		!strings.Contains(err.Error(), "toys needs a toy file") {
		t.Errorf("a GGUF: %v", err)
	}
}

// predictions checks that only the engine that runs toys is assumed for one.
func predictions(t *testing.T, path string) {
	sizes, err := models.Sizes(path)
	check.Err(t, err)
	toys := &engine.Memory{Name: "toys", Title: "Toys", Formats: []string{models.Toy}}
	all := append(kinds.All.Memories(), toys)
	chosen, err := estimate.Choose(all, "", sizes, estimate.Setup{})
	check.Err(t, err)
	e, err := estimate.Of(sizes, estimate.Setup{Engine: chosen})
	if err != nil || chosen != toys || e.Component(estimate.Weights).Best != 2e6 {
		t.Errorf("%+v of %+v: %v", e.Components, chosen, err)
	}
	for _, other := range all[:len(all)-1] {
		if _, err := estimate.Of(sizes, estimate.Setup{Engine: other}); err == nil ||
			!strings.Contains(err.Error(), "does not run toy models such as one.toy") {
			t.Errorf("%s: %v", other.Name, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }
