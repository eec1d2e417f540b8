package engine

import "context"

// Primer is a session that can make prompts ready before they are asked for, such as find their tokens: then nothing
// lies between when a request is due and when it is sent. Nothing of them is computed by the model. Prompts of an
// earlier call are forgotten.
type Primer interface {
	Prime(ctx context.Context, prompts []string) error
}
