package record_test

import (
	"fmt"
	"os"
	"time"

	"llmparity/internal/record"
)

// A record is written while the run happens and read afterwards.
func ExampleCreate() {
	root, err := os.MkdirTemp("", "record")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(root)
	w, err := record.Create(root, record.Meta{Name: "example", Started: time.Now()}, record.Environment{}, nil)
	if err != nil {
		panic(err)
	}
	c := record.Cell{ID: 1, Engine: "llamacpp", Prompt: "hello"}
	w.Cell(c)
	attempt := w.Begin(c, record.Beginning{Repetition: 1})
	begin := time.Now()
	attempt.Phase(record.Load, begin, begin.Add(20*time.Millisecond))
	attempt.End(record.OK, "", nil, record.Cost{})
	if err := w.Close(record.OK); err != nil {
		panic(err)
	}

	r, err := record.Open(root + "/latest")
	if err != nil {
		panic(err)
	}
	for _, a := range r.Attempts {
		load, _ := a.Phase(record.Load)
		fmt.Println(r.CellByID(a.Cell).Engine, a.Status, load.Duration())
	}
	// Output: llamacpp ok 20ms
}
