//go:build !unix

package watch

import (
	"os"
	"time"

	"llmparity/internal/record"
)

// selfCPU is not known here.
func selfCPU() time.Duration { return 0 }

// maxRSS is not known here.
func maxRSS(*os.ProcessState) int64 { return record.Absent }
