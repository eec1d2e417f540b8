package openai

import "time"

// Impatient makes an engine wait for no longer with questions that should be answered at once.
func Impatient(e *Engine, patience time.Duration) { e.patience, e.waiting = patience, patience }
