package reports

import (
	"encoding/json"
	"flag"
	"reflect"
	"testing"

	"llmparity/compare/memory"
	"llmparity/internal/figure"
	"llmparity/internal/gates"
	"llmparity/internal/kit/check"
	"llmparity/internal/kit/schematest"
	"llmparity/internal/record"
)

func TestPublishedSchemas(t *testing.T) {
	const how = "go test ./reports -run PublishedSchemas -update"
	update := flag.Lookup("update").Value.(flag.Getter).Get().(bool)
	open := []reflect.Type{reflect.TypeFor[record.DeviceClass]()}
	schematest.Published(t, "result", Result{},
		schematest.Options{ID: resultSchema, Title: "what report --json and compare --json print", Open: open,
			Nullable: []string{"Risk.places"},
			Const:    map[string]string{"Result.schema": resultSchema}}, update, how)
	schematest.Published(t, "gate", gates.Outcome{},
		schematest.Options{ID: gates.Schema,
			Title: "what gate --format json prints, and what run leaves as gate.json",
			Const: map[string]string{"Gate.schema": gates.Schema}}, update, how)
	schematest.Published(t, "profile", profile{},
		schematest.Options{ID: "llmparity.profile/2.0",
			Title: "a memory profile of schema 2.0, as report --profile writes one", Open: open,
			Const: map[string]string{"profile.profiler_version": "2.0", "profile.schema_version": "2.0"},
			Types: map[reflect.Type]string{reflect.TypeFor[latencyStats](): latencySchema(t)}},
		update, how)
	schematest.Published(t, "validation", memory.Validation{},
		schematest.Options{ID: memory.ValidationSchema, Title: "what validate --json prints", Open: open,
			Const: map[string]string{"Validation.schema": memory.ValidationSchema}}, update, how)
}

// latencySchema has the keys of figures.
func latencySchema(t *testing.T) string {
	t.Helper()
	number := map[string]string{"type": "number"}
	keys := map[string]any{meanLatency: number, meanRate: number}
	for _, r := range figure.Rows(func(r *figure.Row) bool { return r.Profile != "" && !r.Component }) {
		keys[r.Profile] = number
	}
	text, err := json.Marshal(map[string]any{"type": "object", "additionalProperties": false,
		"properties": keys})
	check.Err(t, err)
	return string(text)
}
