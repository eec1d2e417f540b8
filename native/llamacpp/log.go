package llamacpp

import (
	"strings"

	"llmparity/native/logs"
)

// newLogReader reads the log of a llama.cpp program. on, which may be nil, sees each line without its prefix.
func newLogReader(on func(line string)) *logs.Loads {
	return logs.NewLoads(4096, func(line string) string { // lines with sizes are short
		line = strings.TrimRight(prefix.ReplaceAllString(line, ""), "\r")
		if on != nil {
			on(line)
		}
		return line
	})
}
