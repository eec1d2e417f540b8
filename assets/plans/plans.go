// Package plans embeds the plans that come with the program.
package plans

import _ "embed"

// Default is what runs when no plan is named.
//
//go:embed default.yaml
var Default []byte
