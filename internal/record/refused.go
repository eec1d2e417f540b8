package record

import "llmparity/internal/fault"

// Refuse records that a cell can't run here, as an attempt that was never launched. It does not wait for the disk,
// because no measurement could be lost.
func (w *Writer) Refuse(c Cell, class Class, err error) {
	r := w.Begin(c, Beginning{Repetition: 1})
	w.mu.Lock()
	defer w.mu.Unlock()
	w.putLocked(entry{Attempt: r.id,
		End: &endEntry{Status: Refused, Class: class, Error: err.Error(), Fault: fault.Of(err)}})
}
