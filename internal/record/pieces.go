package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
)

// piecesFile holds the texts of tokens that occur in a run, by id. A record without it is whole: ids are what engines
// are compared by.
const piecesFile = "pieces.json"

// Pieces writes what tokens are as text, as the model's file has them.
func (w *Writer) Pieces(texts map[int]string) {
	if len(texts) == 0 || w.Err() != nil {
		return
	}
	path := filepath.Join(w.dir, piecesFile)
	all := map[int]string{}
	if readJSON(path, &all) != nil { // a run that was resumed has some
		all = map[int]string{}
	}
	maps.Copy(all, texts)
	err := replaceJSON(path, all)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fail(err)
}

// readPieces reads them where they are there.
func (r *Run) readPieces(path string) {
	err := readJSON(path, &r.Pieces)
	if err == nil || errors.Is(err, os.ErrNotExist) {
		return
	}
	r.Pieces = nil
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		err = fmt.Errorf("%w at byte %d", err, syntax.Offset)
	}
	r.Warnings = append(r.Warnings, Warning{Code: "pieces",
		Text: fmt.Sprintf("the texts of tokens can't be read (%s: %v): tokens are shown by "+
			"their ids", filepath.Base(path), err)})
}
