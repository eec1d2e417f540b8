//go:build !race && !slow

package gate_test

// runs are simulated of each side.
const runs = 12
