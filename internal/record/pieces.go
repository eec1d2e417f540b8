package record

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"

	"llmparity/internal/whole"
)

// piecesFile maps token ids to their texts. It is optional: outputs are compared by ids.
const piecesFile = "pieces.json"

// Pieces adds texts of tokens, by id.
func (w *Writer) Pieces(texts map[int]string) {
	if len(texts) == 0 || w.Err() != nil {
		return
	}
	path := filepath.Join(w.dir, piecesFile)
	all := map[int]string{}
	if readJSON(path, &all) != nil { // a resumed run has some
		all = map[int]string{}
	}
	maps.Copy(all, texts)
	err := whole.JSON(path, all)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fail(err)
}

// readPieces reads the texts of tokens, if there are any.
func (r *Run) readPieces(path string) {
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return
	}
	if err == nil {
		err = json.Unmarshal(text, &r.Pieces)
	}
	if err != nil {
		r.Pieces = nil
		r.Warnings = append(r.Warnings, Warnf("pieces", "can't read the texts of tokens (%s: %v); ids are shown instead",
			filepath.Base(path), err))
	}
}
