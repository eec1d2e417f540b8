package record

import (
	"bytes"
	"flag"
	"path/filepath"
	"reflect"
	"testing"

	"llmparity/internal/kit/check"
	"llmparity/internal/kit/schematest"
)

var update = flag.Bool("update", false, "update the published schemas")

func TestPublishedSchemas(t *testing.T) {
	const how = "go test ./internal/record -run PublishedSchemas -update"
	schematest.Published(t, "run", Meta{}, schematest.Options{ID: Schema, Title: "run.json of a run folder",
		Const: map[string]string{"Meta.schema": Schema}}, *update, how)
	schematest.Published(t, "environment", Environment{},
		schematest.Options{ID: "llmparity.environment/1", Title: "environment.json of a run folder"}, *update, how)
	schematest.Published(t, "journal", entry{},
		schematest.Options{ID: "llmparity.journal/1", Title: "a line of journal.jsonl of a run folder",
			Open: []reflect.Type{reflect.TypeFor[DeviceClass]()}, OneOf: []reflect.Type{reflect.TypeFor[entry]()},
			Nullable: []string{"Request.prompt_ids", "Risk.places"}}, *update, how)
}

func TestResumedJournalMatchesSchema(t *testing.T) {
	w := made(t, resumed)
	attempt(w, resumed, 1, OK)
	w.Begin(resumed, Beginning{Repetition: 2,
		Machine: &MachineState{Load1: 1, FreeB: 1, AvailableB: 1, SwapUsedB: 1, Governor: "powersave", MHz: 1,
			MaxMHz: 2, Throttled: new(int64(3)), Pressure: new(4.5)}})
	check.Err(t, w.Close(Interrupted))
	again, _ := reopened(t, w.dir)
	again.Resumed(Resumed{Tool: Tool{Version: "2"}, Changed: []Difference{{"kernel", "1", "2"}}})
	again.Stop(Stop{Cell: 1, Figure: "decode_tps"})
	attempt(again, resumed, 2, Failed)
	check.Err(t, again.Close(OK))
	journal := check.Read(t, filepath.Join(w.dir, JournalFile))
	for _, kind := range []string{"resumed", "stop", "begin", "end"} {
		if !bytes.Contains(journal, []byte(`"`+kind+`":{`)) {
			t.Errorf("there is no %s", kind)
		}
	}
	for line := range bytes.Lines(journal) {
		schematest.Valid(t, "journal", line)
	}
}
