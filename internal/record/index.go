package record

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"
)

// indexEvery is how far the journal grows until it gets the next index: so much of it must be read line by line to go
// on with a run.
const indexEvery = 2 << 20

// indexLine says what is in the journal since the index before, so that a run of a million lines can be resumed without
// reading them all. It speaks only of what stands before it in the same file: however that is cut, an index that is
// there is right. One that isn't where it says it is was moved by somebody, and none is believed then. There may be a
// hundred thousand cells, so it is rows of numbers.
type indexLine struct {
	At       int64 `json:"at"`                 // where its own line begins
	Previous int64 `json:"previous,omitempty"` // where the one before begins; 0: there is none
	// The highest numbers so far, and how often the run was resumed.
	Attempts int      `json:"attempts"`
	Sources  int      `json:"sources"`
	Resumes  int      `json:"resumes,omitempty"`
	Words    []string `json:"words,omitempty"` // that rows speak of by their place here, from 0
	// five a row: id, its line's first byte and length, engine (a word), setup
	Cells numbers `json:"cells,omitempty"`
	// Commits are attempts that ended, thirteen a row: attempt, cell, repetition, 1 for a warm-up launch or 2 for
	// scoring, who opened its session, status and class (words); and by first byte and length the line in which its
	// engine says what it is (0 and 0: it didn't), its lines from begin to end, and its rows of tokens.csv.
	Commits   numbers `json:"commits,omitempty"`
	Begun     numbers `json:"begun,omitempty"` // attempts of the whole run that have no end, as in commits
	Predicted numbers `json:"predicted,omitempty"`
	Judged    numbers `json:"judged,omitempty"`
	Stopped   numbers `json:"stopped,omitempty"`
}

const (
	cellRow   = 5
	commitRow = 13
)

// numbers are whole, and none is below zero.
type numbers []int64

// UnmarshalJSON reads millions of them in a moment.
func (n *numbers) UnmarshalJSON(text []byte) error {
	*n = (*n)[:0]
	value, some := int64(0), false
	for _, c := range text {
		switch {
		case c >= '0' && c <= '9':
			if value > 1<<58 {
				return errNumbers
			}
			value, some = value*10+int64(c-'0'), true
		case c == ',' || c == ']':
			if some {
				*n = append(*n, value)
			}
			value, some = 0, false
		case c != '[' && c != ' ':
			return errNumbers
		}
	}
	return nil
}

var errNumbers = errors.New("an index has something else than rows of whole numbers")

// word is the place of a text among an index's words.
func (i *indexLine) word(text string) int64 {
	at := slices.Index(i.Words, text)
	if at < 0 {
		at = len(i.Words)
		i.Words = append(i.Words, text)
	}
	return int64(at)
}

func (i *indexLine) addCell(id int, at stretchOf, of ran) {
	i.Cells = append(i.Cells, int64(id), at.first, at.size, i.word(of.engine), int64(of.setup))
}

func (i *indexLine) row(c Commit) []int64 {
	kind := int64(0)
	switch {
	case c.Warmup:
		kind = 1
	case c.Scoring:
		kind = 2
	}
	return []int64{int64(c.Attempt), int64(c.Cell), int64(c.Repetition), kind, int64(c.OpenedBy),
		i.word(string(c.Status)), i.word(string(c.Class)),
		c.engine.first, c.engine.size, c.lines.first, c.lines.size, c.tokens.first, c.tokens.size}
}

func (i *indexLine) commit(row []int64) Commit {
	return Commit{Attempt: int(row[0]), Cell: int(row[1]), Repetition: int(row[2]), Warmup: row[3] == 1,
		Scoring: row[3] == 2, OpenedBy: int(row[4]),
		Status: Status(i.Words[row[5]]), Class: Class(i.Words[row[6]]), engine: stretchOf{row[7], row[8]},
		lines:  stretchOf{row[9], row[10]},
		tokens: stretchOf{row[11], row[12]}}
}

// sound tells whether rows are whole and speak of words that there are.
func (i *indexLine) sound() bool {
	return rowsSound(i.Cells, cellRow, len(i.Words), 3) && rowsSound(i.Commits, commitRow, len(i.Words), 5, 6) &&
		rowsSound(i.Begun, commitRow, len(i.Words), 5, 6)
}

func rowsSound(rows numbers, width, words int, at ...int) bool {
	if len(rows)%width != 0 {
		return false
	}
	for row := range slices.Chunk(rows, width) {
		for _, n := range at {
			if row[n] >= int64(words) {
				return false
			}
		}
	}
	return true
}

// clone is what can be added to without touching the other.
func (i indexLine) clone() indexLine {
	i.Words = slices.Clone(i.Words)
	for _, n := range []*numbers{&i.Cells, &i.Commits, &i.Begun, &i.Predicted, &i.Judged, &i.Stopped} {
		*n = slices.Clone(*n)
	}
	return i
}

// index gives the line that is to be written at a byte, for what came since the last one.
func (s *State) index(at int64) *indexLine {
	i := s.since.clone()
	i.At, i.Previous = at, s.since.At
	i.Attempts, i.Sources, i.Resumes = s.Attempts, s.Sources, s.Resumes
	for _, n := range slices.Sorted(maps.Keys(s.begun)) {
		i.Begun = append(i.Begun, i.row(s.begun[n])...)
	}
	return &i
}

// byIndex takes in the journal's indexes and gives the byte behind the last. ok is false where they can't be believed.
func (s *State) byIndex(journal io.ReaderAt, end int64) (from int64, ok bool) {
	at, found := lastIndex(journal, end)
	if !found {
		return 0, true
	}
	var all []*indexLine
	for {
		e, size, ok := indexAt(journal, at, end)
		if !ok || !e.Index.sound() {
			return 0, false
		}
		if len(all) == 0 {
			from, s.LastNS = at+size, e.T
		}
		all = append(all, e.Index)
		if e.Index.Previous == 0 {
			break
		}
		if e.Index.Previous < 0 || e.Index.Previous >= at {
			return 0, false
		}
		at = e.Index.Previous
	}
	for _, i := range slices.Backward(all) {
		s.take(i)
	}
	last := all[0]
	for row := range slices.Chunk(last.Begun, commitRow) {
		c := last.commit(row)
		s.begun[c.Attempt] = c
	}
	s.Attempts, s.Sources, s.Resumes = last.Attempts, last.Sources, last.Resumes
	s.since = indexLine{At: last.At}
	return from, true
}

// take does what the lines that an index stands for would do.
func (s *State) take(i *indexLine) {
	for row := range slices.Chunk(i.Cells, cellRow) {
		s.announce(int(row[0]), stretchOf{row[1], row[2]}, ran{i.Words[row[3]], int(row[4])})
	}
	for row := range slices.Chunk(i.Commits, commitRow) {
		s.commit(i.commit(row))
	}
	for _, cell := range i.Predicted {
		s.predict(int(cell))
	}
	for _, cell := range i.Judged {
		s.judge(int(cell))
	}
	for _, cell := range i.Stopped {
		s.stop(int(cell))
	}
}

// indexMark is in index lines alone: within a text its quotation marks would be escaped.
var indexMark = []byte(`,"index":{"at":`)

// lastIndex looks for the last index line, from the end on.
func lastIndex(journal io.ReaderAt, end int64) (at int64, found bool) {
	buffer := make([]byte, 16*block+len(indexMark))
	for end > 0 {
		start := max(0, end-16*block)
		part := buffer[:min(int64(len(buffer)), end-start+int64(len(indexMark)))]
		n, err := journal.ReadAt(part, start) // it goes on into what was looked at before: a mark may lie across
		if err != nil && err != io.EOF {
			return 0, false
		}
		if i := bytes.LastIndex(part[:n], indexMark); i >= 0 {
			return lineBegin(journal, start+int64(i))
		}
		end = start
	}
	return 0, false
}

// lineBegin is where the line of a byte begins. What stands before an index's mark is short.
func lineBegin(journal io.ReaderAt, at int64) (int64, bool) {
	start := max(0, at-256)
	part := make([]byte, at-start)
	if _, err := journal.ReadAt(part, start); err != nil {
		return 0, false
	}
	return start + int64(bytes.LastIndexByte(part, '\n')) + 1, true
}

// indexAt reads the index line that begins at a byte, and how long it is.
func indexAt(journal io.ReaderAt, at, end int64) (e entry, size int64, ok bool) {
	in := bufio.NewReaderSize(io.NewSectionReader(journal, at, end-at), block)
	line, _, err := readLine(in, nil)
	if err != nil || json.Unmarshal(line, &e) != nil || e.Index == nil || e.Index.At != at {
		return e, 0, false
	}
	return e, int64(len(line)) + 1, true
}
