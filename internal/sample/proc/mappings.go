package proc

// Kind is what a mapping of a process is for, as far as its name and its permissions tell.
type Kind int

// The kinds of mappings.
const (
	Anonymous Kind = iota // memory without a name: heaps, stacks, buffers
	Code                  // code that was made while the program runs
	Shared                // memory that processes hand to each other
	Files                 // programs, libraries and data of files
	kinds
)

// Metric is the name that a kind's size has among a reading's values.
func (k Kind) Metric() string {
	return [kinds]string{"anonymous_bytes", "code_bytes", "shared_bytes", "files_bytes"}[k]
}

// Kinds are a process's proportional sizes in bytes, by kind.
type Kinds [kinds]int64

// Sum is the process's PSS.
func (k Kinds) Sum() int64 {
	sum := int64(0)
	for _, n := range k {
		sum += n
	}
	return sum
}
