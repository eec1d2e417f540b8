// Package schemas holds the published JSON Schemas of what llmparity writes: a file a document, made from the Go types
// by the tests of the packages that own them, so that no field can be without one.
//
// A schema tells shapes, units' names and which fields are always there. It can't tell whether figures are right.
package schemas

import (
	"embed"
	"fmt"
	"io/fs"
	"strings"
)

//go:embed *.schema.json
var files embed.FS

const suffix = ".schema.json"

// Names lists the documents that have a schema, in the order of the alphabet.
func Names() []string {
	paths, err := fs.Glob(files, "*"+suffix)
	if err != nil {
		panic(err) // the pattern is a constant
	}
	names := make([]string, len(paths))
	for i, p := range paths {
		names[i] = strings.TrimSuffix(p, suffix)
	}
	return names
}

// Text is the schema of that name.
func Text(name string) ([]byte, error) {
	text, err := files.ReadFile(name + suffix)
	if err != nil {
		return nil, fmt.Errorf("there is no schema %q, there are: %s", name, strings.Join(Names(), ", "))
	}
	return text, nil
}
