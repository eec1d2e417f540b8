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
		got, err := os.ReadFile(filepath.Join("../../docs/reference", name))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("docs/reference/%s is out of date (%v): go run ./scripts/reference", name, err)
		}
	}
}
