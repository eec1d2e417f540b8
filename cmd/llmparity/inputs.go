package main

import (
	"os"
	"path/filepath"
	"strings"

	"llmparity/internal/foreign"
	"llmparity/internal/record"
)

// openRun reads what can be compared: a run folder, or a file of rows that another program wrote.
func openRun(path string) (*record.Run, error) {
	info, err := os.Stat(path)
	if err == nil && !info.IsDir() || err != nil && strings.EqualFold(filepath.Ext(path), ".csv") {
		return foreign.Open(path)
	}
	return record.Open(path)
}
