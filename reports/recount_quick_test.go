//go:build !race && !slow

package reports_test

// pairsAgain is how many pairs of cells have their conclusions worked out again: each adds no question that two don't
// ask.
const pairsAgain = 2
