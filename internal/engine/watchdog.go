package engine

import "time"

// Watchdog is how long an engine at work may give no sign of life, where a user does not say otherwise.
const Watchdog = time.Minute
