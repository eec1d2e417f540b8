package llamacpp

import (
	"strings"

	"llmparity/native/logs"
)

// newLogReader reads the log of a program of llama.cpp's. on sees every line, without its prefix; nil: nobody does.
func newLogReader(on func(line string)) *logs.Loads {
	return logs.NewLoads(4096, func(line string) string { // the sizes' lines are short
		line = strings.TrimRight(prefix.ReplaceAllString(line, ""), "\r")
		if on != nil {
			on(line)
		}
		return line
	})
}
