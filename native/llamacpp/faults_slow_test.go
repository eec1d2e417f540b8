//go:build slow

package llamacpp

import "testing"

func TestScoresShowAllFaultsInLlamaServer(t *testing.T) {
	in := intactModel(t)
	for _, f := range in.All() {
		shows(t, in, f)
	}
}
