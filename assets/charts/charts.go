// Package charts embeds what reports draw with: echarts, and fflate, by which a page unpacks what its charts are drawn
// from. They are npm's builds, copied here by make setup and never committed: a program built without them still runs,
// and says what is missing when a report is asked for.
package charts

import (
	"embed"

	"llmparity/internal/kit/fault"
)

//go:embed all:dist
var dist embed.FS

// Libraries are the whole of echarts.min.js and of fflate.min.js.
func Libraries() (echarts, fflate string, err error) {
	var texts [2]string
	for i, name := range []string{"echarts.min.js", "fflate.min.js"} {
		text, err := dist.ReadFile("dist/" + name)
		if err != nil {
			return "", "", fault.New(fault.NoBundle, "run make setup and build again",
				"this program was built without %s, which the HTML report draws with", name)
		}
		texts[i] = string(text)
	}
	return texts[0], texts[1], nil
}
