// Package echarts embeds the charting library that reports inline. It is npm's build, copied here by make setup and never
// committed: a program built without it still runs, and says what is missing when a report is asked for.
package echarts

import (
	"embed"

	"llmparity/internal/fault"
)

//go:embed all:dist
var dist embed.FS

// Script is the whole of echarts.min.js.
func Script() (string, error) {
	text, err := dist.ReadFile("dist/echarts.min.js")
	if err != nil {
		return "", fault.New(fault.NoBundle, "run make setup and build again", "this program was built without echarts.min.js, which the HTML report draws with")
	}
	return string(text), nil
}
