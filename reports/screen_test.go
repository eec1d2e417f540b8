package reports_test

import (
	"fmt"
	"time"

	"llmparity/compare/comparetest"
)

// bundled are cells of WebLLM with several bundles and contexts, with all that a page reports. The last bundle stalls
// for 3 ms at each token, which makes decoding 30% slower.
func bundled(contexts []int, bundles ...string) []comparetest.Engine {
	var out []comparetest.Engine
	for i, bundle := range bundles {
		for _, context := range contexts {
			e := comparetest.Measured(comparetest.Browser(6), comparetest.Page())
			e.Cell.ID, e.Cell.Model.Context = len(out)+1, context
			e.Cell.Settings = map[string]string{"webllm_bundle": bundle}
			e.Token = 7 * time.Millisecond
			if i == len(bundles)-1 {
				e.Token += 3 * time.Millisecond
			}
			out = append(out, e)
		}
	}
	return out
}

// manyBundles are 24 cells.
func manyBundles() []comparetest.Engine {
	var names []string
	for n := range 8 {
		names = append(names, fmt.Sprint("build-", n+1))
	}
	return bundled([]int{512, 1024, 2048}, names...)
}
