package openai

import (
	"testing"
	"time"
)

// Impatient limits how long questions may take, until the test ends.
func Impatient(t *testing.T, patience time.Duration) {
	before := askPatience
	askPatience = patience
	t.Cleanup(func() { askPatience = before })
}
