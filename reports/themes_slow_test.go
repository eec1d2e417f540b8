//go:build slow

package reports_test

// everyTheme tells whether each report is looked at in light and in dark at every width.
const everyTheme = true
