package plain

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// separator is what stands between the differences in a label.
const separator = ", "

// Fit shortens labels of cells in the middle to so many characters, and never so that two become equal: then they stay
// longer. Each difference that a label lists keeps its place, and has one short form in all labels.
func Fit(labels []string, width int) []string {
	if fits(labels, width) {
		return slices.Clone(labels)
	}
	var parts []string
	for _, l := range labels {
		for p := range strings.SplitSeq(l, separator) {
			if !slices.Contains(parts, p) {
				parts = append(parts, p)
			}
		}
	}
	var out []string
	const shortest = 5
	for most := width; most >= shortest; most-- {
		out = joined(labels, parts, most, most)
		if !fits(out, width) || confused(labels, out) {
			continue
		}
		for first := most + 1; first <= width; first++ { // what comes first says most
			wider := joined(labels, parts, first, most)
			if !fits(wider, width) || confused(labels, wider) {
				break
			}
			out = wider
		}
		return out
	}
	if whole := distinct(labels, width); confused(labels, out) || longest(whole) < longest(out) {
		return whole
	}
	return out
}

// joined are labels whose parts are shortened, the first to another width than the others.
func joined(labels, parts []string, first, others int) []string {
	heads, tails := distinct(parts, first), distinct(parts, others)
	at := make(map[string]int, len(parts))
	for i, part := range parts {
		at[part] = i
	}
	out := make([]string, len(labels))
	for i, l := range labels {
		words := strings.Split(l, separator)
		for n, word := range words {
			if words[n] = tails[at[word]]; n == 0 {
				words[n] = heads[at[word]]
			}
		}
		out[i] = strings.Join(words, separator)
	}
	return out
}

func fits(all []string, width int) bool { return longest(all) <= width }

func longest(all []string) (n int) {
	for _, s := range all {
		n = max(n, utf8.RuneCountInString(s))
	}
	return n
}

// confused reports whether labels that differ have the same form.
func confused(labels, forms []string) bool {
	of := map[string]string{}
	for i, form := range forms {
		if label, ok := of[form]; ok && label != labels[i] {
			return true
		}
		of[form] = labels[i]
	}
	return false
}

// distinct shortens texts in the middle; those that would become equal keep what differs between them.
func distinct(all []string, width int) []string {
	out, wide := make([]string, len(all)), make([]int, len(all))
	for i, s := range all {
		wide[i] = width
		out[i] = middle([]rune(s), width)
	}
	for {
		equal := map[string][]int{}
		for i, form := range out {
			equal[form] = append(equal[form], i)
		}
		done := true
		for _, group := range equal {
			differ := slices.ContainsFunc(group, func(i int) bool { return all[i] != all[group[0]] })
			cut := slices.ContainsFunc(group, func(i int) bool { return wide[i] <= utf8.RuneCountInString(all[i]) })
			if !differ || !cut { // cut: else they differ in what no letter shows
				continue
			}
			done = false
			before, after := shared(all, group)
			for _, i := range group {
				out[i] = around([]rune(all[i]), before, after, wide[i])
				wide[i] += max(1, wide[i]/4)
			}
		}
		if done {
			return out
		}
	}
}

// shared is how many letters some texts have in common at either end.
func shared(all []string, group []int) (before, after int) {
	first := []rune(all[group[0]])
	before, after = len(first), len(first)
	for _, i := range group {
		s := []rune(all[i])
		if all[i] == all[group[0]] {
			continue
		}
		n := 0
		for n < min(before, len(s)) && s[n] == first[n] {
			n++
		}
		before, n = n, 0
		for n < min(after, len(s)) && s[len(s)-1-n] == first[len(first)-1-n] {
			n++
		}
		after = n
	}
	return before, after
}

const gap = "…"

// edge is a letter between words.
func edge(c rune) bool { return strings.ContainsRune(" -_./\\:,;()", c) }

// middle shortens a text in the middle, at the ends of words if some are near. It keeps the last word whole, which is a
// value: a version, a number, a dtype.
func middle(s []rune, width int) string {
	if len(s) <= width {
		return string(s)
	}
	head, tail := max(width/2, 1), max((width-1)/2, 0)
	last := 0
	for last < len(s) && !strings.ContainsRune(" /", s[len(s)-1-last]) {
		last++
	}
	if last > tail && last+2 <= width {
		head, tail = width-1-last, last
	}
	return begin(s, head) + gap + end(s, tail)
}

// begin is the first letters of a text, at most so many, without a piece of a word behind at least half of them.
func begin(s []rune, most int) string {
	for n := most; n > most/2 && n > 1 && n < len(s); n-- {
		if edge(s[n]) {
			return strings.TrimRightFunc(string(s[:n]), edge)
		}
	}
	return strings.TrimRightFunc(string(s[:most]), edge)
}

// end is the last letters of a text, as begin is the first ones.
func end(s []rune, most int) string {
	from := len(s) - most
	for at := from; at <= from+most/2 && at > 0; at++ {
		if edge(s[at-1]) {
			return string(s[at:])
		}
	}
	return string(s[from:])
}

// around shortens a text but for what lies between its first and its last letters, whole words if they have room.
func around(s []rune, before, after, width int) string {
	if len(s) <= width {
		return string(s)
	}
	after = min(after, len(s)-before) // what repeats, as in aa and aaa, counts once
	from, to := before, len(s)-after
	for from > 0 && !edge(s[from-1]) {
		from--
	}
	for to < len(s) && !edge(s[to]) {
		to++
	}
	if to-from+2 > width {
		from, to = before, len(s)-after
	}
	room := max(width-(to-from)-2, 0)
	head := min(from, room/2)
	tail := min(len(s)-to, room-head)
	head = min(from, room-tail)
	text := middle(s[from:to], max(width-2, 1))
	if head < from {
		text = begin(s, head) + gap + text
	} else {
		text = string(s[:head]) + text
	}
	if tail < len(s)-to {
		return text + gap + end(s, tail)
	}
	return text + string(s[to:])
}
