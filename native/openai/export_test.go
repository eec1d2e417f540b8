package openai

import (
	"testing"
	"time"

	"llmparity/internal/engine"
)

// Impatient limits how long questions may take, until the test ends.
func Impatient(t *testing.T, patience time.Duration) {
	before := askPatience
	askPatience = patience
	t.Cleanup(func() { askPatience = before })
}

// Verified calls verified on a session.
func Verified(local bool, file string, m engine.Model) bool {
	s := &session{client: &client{at: address{local: local}}, server: server{file: file}}
	return s.verified(m)
}
