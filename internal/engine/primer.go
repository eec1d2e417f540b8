package engine

import "context"

// Primer is a session that can prepare prompts, for example tokenise them, so that each request is sent when it is
// due. The model computes nothing. A second call replaces the prompts of the first.
type Primer interface {
	Prime(ctx context.Context, prompts []string) error
}
