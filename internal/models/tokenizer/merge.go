package tokenizer

import (
	"container/heap"
	"strings"
)

// merge joins neighbouring characters of a text until no pair has a score: the highest score first, then the leftmost.
//
// SentencePiece treats a whole text as one word, so parts form a linked list and pairs a heap, which is nearly linear.
// A pair whose parts have changed since it was pushed is skipped when popped.
func merge(text string, score func(left, right string) (float64, bool)) []string {
	m := merging{parts: strings.Split(text, ""), score: score}
	m.next, m.before = make([]int, len(m.parts)), make([]int, len(m.parts))
	for i := range m.parts {
		m.next[i], m.before[i] = i+1, i-1
	}
	for i := range m.parts {
		m.look(i)
	}
	for m.Len() > 0 {
		m.join(heap.Pop(&m).(pair))
	}
	var left []string
	for i := 0; i < len(m.parts); i = m.next[i] {
		left = append(left, m.parts[i])
	}
	return left
}

// pair is two neighbours that can be joined: the position of the left one, and the lengths of both.
type pair struct {
	score       float64
	at          int
	left, right int
}

// merging is the state of a merge. As a heap, it holds its pairs.
type merging struct {
	parts        []string // a part that was joined to its left neighbour is empty
	next, before []int
	pairs        []pair
	score        func(left, right string) (float64, bool)
}

// look pushes a part and its right neighbour if they can be joined.
func (m *merging) look(i int) {
	if i < 0 || m.next[i] >= len(m.parts) {
		return
	}
	left, right := m.parts[i], m.parts[m.next[i]]
	if s, ok := m.score(left, right); ok {
		heap.Push(m, pair{s, i, len(left), len(right)})
	}
}

func (m *merging) join(p pair) {
	right := m.next[p.at]
	if len(m.parts[p.at]) != p.left || right >= len(m.parts) || len(m.parts[right]) != p.right {
		return // one of them has changed since
	}
	m.parts[p.at] += m.parts[right]
	m.parts[right] = ""
	m.next[p.at] = m.next[right]
	if m.next[right] < len(m.parts) {
		m.before[m.next[right]] = p.at
	}
	m.look(m.before[p.at])
	m.look(p.at)
}

func (m *merging) Len() int { return len(m.pairs) }
func (m *merging) Less(i, j int) bool {
	a, b := m.pairs[i], m.pairs[j]
	return a.score > b.score || a.score == b.score && a.at < b.at
}
func (m *merging) Swap(i, j int) { m.pairs[i], m.pairs[j] = m.pairs[j], m.pairs[i] }
func (m *merging) Push(x any)    { m.pairs = append(m.pairs, x.(pair)) }
func (m *merging) Pop() any {
	last := m.pairs[len(m.pairs)-1]
	m.pairs = m.pairs[:len(m.pairs)-1]
	return last
}
