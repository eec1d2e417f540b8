//go:build !unix

package watch

import (
	"os"

	"llmparity/internal/record"
)

// readsFromUs is false: there are no groups of processes here.
func readsFromUs(int) bool { return false }

// maxRSS is not known here.
func maxRSS(*os.ProcessState) int64 { return record.Absent }
