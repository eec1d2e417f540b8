package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

func TestReferenceIsCurrent(t *testing.T) {
	pages, err := pages()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range pages {
		got, _ := os.ReadFile(filepath.Join("../../docs/reference", name)) // a missing page is out of date, too
		if !bytes.Equal(got, want) {
			t.Errorf("docs/reference/%s is out of date; update it with go run ./scripts/reference", name)
		}
	}
}
