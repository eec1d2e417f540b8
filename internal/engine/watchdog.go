package engine

import "time"

// Watchdog is how long a working engine may give no sign of life, unless the user sets another limit.
const Watchdog = time.Minute
