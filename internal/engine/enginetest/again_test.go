package enginetest

import (
	"testing"
	"time"

	"llmparity/internal/record"
)

func TestInterleaved(t *testing.T) {
	of := func(ms ...int) (g Generation) {
		for _, at := range ms {
			g.Tokens = append(g.Tokens, record.Token{At: time.Unix(0, int64(at)*1e6)})
		}
		return g
	}
	first, beside, after := of(0, 10, 20, 30, 40), of(15, 25, 35, 45), of(41, 50, 60, 70)
	if !interleaved([]Generation{first, beside}) || interleaved([]Generation{first, after}) ||
		interleaved([]Generation{first, beside, after}) {
		t.Error("generations one after the other are taken for interleaved ones, or the reverse")
	}
}
