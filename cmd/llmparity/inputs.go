package main

import (
	"os"
	"path/filepath"
	"strings"

	"llmparity/internal/fault"
	"llmparity/internal/foreign"
	"llmparity/internal/record"
)

// openRun reads what can be compared: a run folder, or a file of rows that another program wrote.
func openRun(path string) (*record.Run, error) {
	info, err := os.Stat(path)
	if err == nil && !info.IsDir() || err != nil && strings.EqualFold(filepath.Ext(path), ".csv") {
		rows, wrong := foreign.Open(path)
		// its totals, tokens …, which are no rows by themselves
		if folder := filepath.Dir(path); wrong != nil && record.IsRun(folder) {
			return nil, fault.New(fault.Usage, "name the folder: "+folder, "%s is a file of a run's folder", path)
		}
		return rows, wrong
	}
	return record.Open(path)
}
