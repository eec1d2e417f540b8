package resolve

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"llmparity/internal/record"
)

// history is what launches took in earlier runs, by engine and model: what a plan's time is foretold by. It knows
// nothing of how a machine was then.
type history map[pastKey]*past

type pastKey struct{ engine, model string } // names, as records have them

// past is launches that went well.
type past struct {
	around   []float64 // seconds of a launch without what is measured
	measured []measured
}

// measured is what a measurement took, and of how many tokens.
type measured struct{ seconds, prompt, generated float64 }

// Bounds on what is read of earlier runs: the newest ones tell most.
const (
	mostRuns    = 12
	mostJournal = 16 << 20
)

// pastRuns reads what there is in the folder that holds run folders; what can't be read tells nothing.
func pastRuns(out string) history {
	h := history{}
	entries, _ := os.ReadDir(out) // none: nothing is known
	type aged struct {
		path string
		at   time.Time
	}
	var found []aged
	for _, e := range entries {
		path := filepath.Join(out, e.Name(), "journal.jsonl")
		if info, err := os.Stat(path); err == nil && e.IsDir() {
			found = append(found, aged{path, info.ModTime()})
		}
	}
	slices.SortFunc(found, func(a, b aged) int { return b.at.Compare(a.at) })
	for _, f := range found[:min(len(found), mostRuns)] {
		h.read(f.path)
	}
	return h
}

// pastLine is what matters here of a line of the journal.
type pastLine struct {
	T       int64 `json:"t_ns"`
	Attempt int   `json:"attempt"`
	Cell    *struct {
		ID     int    `json:"id"`
		Engine string `json:"engine"`
		Model  struct {
			Name string `json:"name"`
		} `json:"model"`
	} `json:"cell"`
	Begin *struct {
		Cell     int       `json:"cell"`
		OpenedBy int       `json:"opened_by"`
		Scoring  *struct{} `json:"scoring"`
	} `json:"begin"`
	Phase *struct {
		Name  record.Phase `json:"name"`
		Begin int64        `json:"begin_ns"`
		End   int64        `json:"end_ns"`
	} `json:"phase"`
	Request *struct {
		Phase        record.Phase `json:"phase"`
		PromptIDs    []int        `json:"prompt_ids"`
		PromptTokens int          `json:"prompt_tokens"`
		Cached       int          `json:"cached_tokens"`
		Tokens       int          `json:"tokens"`
	} `json:"request"`
	End *struct {
		Status record.Status `json:"status"`
	} `json:"end"`
}

// launched is an attempt while it is read.
type launched struct {
	key      pastKey
	begin    int64
	measured int64
	tokens   int
	prompt   int // tokens that were computed
	opens    bool
	skip     bool
}

// marks are in the lines that are looked at.
var marks = [][]byte{[]byte(`"cell":{"id"`), []byte(`"begin":{`), []byte(`"name":"measure"`),
	[]byte(`"phase":"measure"`), []byte(`"end":{`)}

func (h history) read(path string) {
	f, err := os.Open(path)
	if err != nil {
		return
	}
	defer f.Close()
	cells, going := map[int]pastKey{}, map[int]*launched{}
	r := bufio.NewReaderSize(io.LimitReader(f, mostJournal), 1<<20)
	for {
		line, err := r.ReadSlice('\n')
		if err == bufio.ErrBufferFull {
			for err == bufio.ErrBufferFull { // longer than any that matters
				_, err = r.ReadSlice('\n')
			}
			continue
		}
		if err != nil {
			return
		}
		if !slices.ContainsFunc(marks, func(m []byte) bool { return bytes.Contains(line, m) }) {
			continue
		}
		var l pastLine
		if json.Unmarshal(line, &l) == nil {
			h.take(l, cells, going)
		}
	}
}

func (h history) take(l pastLine, cells map[int]pastKey, going map[int]*launched) {
	if l.Cell != nil {
		cells[l.Cell.ID] = pastKey{l.Cell.Engine, l.Cell.Model.Name}
		return
	}
	if l.Begin != nil {
		going[l.Attempt] = &launched{key: cells[l.Begin.Cell], begin: l.T, opens: l.Begin.OpenedBy == 0,
			skip: l.Begin.Scoring != nil}
		return
	}
	a := going[l.Attempt]
	switch {
	case a == nil:
	case l.Phase != nil && l.Phase.Name == record.Measure:
		a.measured = l.Phase.End - l.Phase.Begin
	case l.Request != nil && l.Request.Phase == record.Measure:
		a.tokens += l.Request.Tokens
		a.prompt += max(max(len(l.Request.PromptIDs), l.Request.PromptTokens)-max(l.Request.Cached, 0), 0)
	case l.End != nil:
		delete(going, l.Attempt)
		if l.End.Status != record.OK || a.skip || a.tokens == 0 || a.measured <= 0 {
			return
		}
		p := h[a.key]
		if p == nil {
			p = &past{}
			h[a.key] = p
		}
		p.measured = append(p.measured, measured{float64(a.measured) / 1e9, float64(a.prompt), float64(a.tokens)})
		if a.opens {
			p.around = append(p.around, max(float64(l.T-a.begin-a.measured), 0)/1e9)
		}
	}
}

// of foretells how long attempts take of which so many launch the engine, and which all together have prompts of so
// many tokens and generate so many.
func (h history) of(key pastKey, launches, prompt, generated int) (seconds float64, known bool) {
	p := h[key]
	if p == nil || len(p.around) == 0 {
		return 0, false
	}
	perPrompt, perGenerated := p.perToken()
	return float64(launches)*middle(p.around) + float64(prompt)*perPrompt + float64(generated)*perGenerated, true
}

// promptShare is what a prompt's token takes of the time of one that is generated, where earlier runs were too much
// alike to tell: on processors it was a third to a twentieth.
const promptShare = 1.0 / 8

// perToken is how many seconds a token of a prompt takes, and one that is generated: what is the least wrong, in
// proportion, about all that was measured.
func (p *past) perToken() (prompt, generated float64) {
	var pp, pg, gg, p1, g1 float64 // sums of products; what is measured is 1
	low, high := math.Inf(1), 0.0
	for _, m := range p.measured {
		x, y := m.prompt/m.seconds, m.generated/m.seconds
		pp, pg, gg, p1, g1 = pp+x*x, pg+x*y, gg+y*y, p1+x, g1+y
		low, high = min(low, m.prompt/m.generated), max(high, m.prompt/m.generated)
	}
	if det := pp*gg - pg*pg; high > 2*low && det > 0 {
		prompt, generated = (p1*gg-g1*pg)/det, (g1*pp-p1*pg)/det
		switch {
		case prompt < 0:
			return 0, g1 / gg
		case generated < 0:
			return p1 / pp, 0
		}
		return prompt, generated
	}
	var each []float64
	for _, m := range p.measured {
		each = append(each, m.seconds/(m.generated+promptShare*m.prompt))
	}
	generated = middle(each)
	return promptShare * generated, generated
}

// middle is the median, which sorts its values.
func middle(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}
