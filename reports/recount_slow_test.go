//go:build !race && slow

package reports_test

// pairsAgain is how many pairs of cells have their conclusions worked out again.
const pairsAgain = 4
