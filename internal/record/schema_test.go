package record

import (
	"flag"
	"reflect"
	"testing"

	"llmparity/internal/schematest"
)

var update = flag.Bool("update", false, "write the published schemas anew")

func TestPublishedSchemas(t *testing.T) {
	const how = "go test ./internal/record -run PublishedSchemas -update"
	schematest.Published(t, "run", Meta{}, schematest.Options{ID: "llmparity.run/1", Title: "run.json of a run folder",
		Const: map[string]string{"Meta.schema": Schema}}, *update, how)
	schematest.Published(t, "environment", Environment{}, schematest.Options{ID: "llmparity.environment/1", Title: "environment.json of a run folder"}, *update, how)
	schematest.Published(t, "journal", entry{}, schematest.Options{ID: "llmparity.journal/1", Title: "a line of journal.jsonl of a run folder",
		Open: []reflect.Type{reflect.TypeFor[DeviceClass]()}, OneOf: []reflect.Type{reflect.TypeFor[entry]()},
		Nullable: []string{"requestRow.prompt_ids", "Risk.places"}}, *update, how)
}
