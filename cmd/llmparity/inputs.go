package main

import (
	"os"
	"path/filepath"
	"strings"

	"llmparity/internal/fault"
	"llmparity/internal/foreign"
	"llmparity/internal/record"
)

// openRun reads a run's folder, or a memory log (CSV) of another program.
func openRun(path string) (*record.Run, error) {
	info, err := os.Stat(path)
	if err == nil && !info.IsDir() || err != nil && strings.EqualFold(filepath.Ext(path), ".csv") {
		rows, wrong := foreign.Open(path)
		if folder := filepath.Dir(path); wrong != nil && record.IsRun(folder) {
			return nil, fault.New(fault.Usage, "use the folder "+folder, "%s is a file in a run's folder", path)
		}
		return rows, wrong
	}
	return record.Open(path)
}
