//go:build !unix

package watch

import (
	"os"

	"llmparity/internal/record"
)

// maxRSS is not known here.
func maxRSS(*os.ProcessState) int64 { return record.Absent }
