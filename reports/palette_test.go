package reports_test

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"llmparity/internal/kit/check"
)

// rgb is a colour in linear light.
type rgb [3]float64

// sights are ways of seeing colours, as matrices over linear RGB: those of Machado, Oliveira and Fernandes (2009) for
// the whole loss of one kind of cones.
var sights = map[string][3]rgb{
	"all cones":    {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}},
	"protanopia":   {{0.152286, 1.052583, -0.204868}, {0.114503, 0.786281, 0.099216}, {-0.003882, -0.048116, 1.051998}},
	"deuteranopia": {{0.367322, 0.860646, -0.227968}, {0.280085, 0.672501, 0.047413}, {-0.011820, 0.042940, 0.968881}},
	"tritanopia":   {{1.255528, -0.076749, -0.178779}, {-0.078411, 0.930809, 0.147602}, {0.004733, 0.691367, 0.303900}},
}

// themes reads the colours out of the style sheet.
func themes(t *testing.T) map[string]map[string]rgb {
	t.Helper()
	css := check.Read(t, "page/report.css")
	light, dark, found := strings.Cut(string(css), "@media screen and (prefers-color-scheme: dark)")
	if !found {
		t.Fatal("the style sheet has no dark colours")
	}
	dark, _, _ = strings.Cut(dark, "}\n}")
	out := map[string]map[string]rgb{"light": {}, "dark": {}}
	for theme, text := range map[string]string{"light": light, "dark": dark} {
		for _, m := range regexp.MustCompile(`--([a-z0-9-]+): #([0-9a-f]{6});`).FindAllStringSubmatch(text, -1) {
			n, err := strconv.ParseUint(m[2], 16, 32)
			check.Err(t, err)
			var c rgb
			for i := range c {
				if v := float64(n>>(16-8*i)&255) / 255; v <= 0.04045 {
					c[i] = v / 12.92
				} else {
					c[i] = math.Pow((v+0.055)/1.055, 2.4)
				}
			}
			out[theme][m[1]] = c
		}
	}
	return out
}

// luminance is WCAG's relative one.
func (c rgb) luminance() float64 { return 0.2126*c[0] + 0.7152*c[1] + 0.0722*c[2] }

func contrast(a, b rgb) float64 {
	x, y := a.luminance(), b.luminance()
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

func (c rgb) seenBy(m [3]rgb) rgb {
	var out rgb
	for i, row := range m {
		out[i] = min(1, max(0, row[0]*c[0]+row[1]*c[1]+row[2]*c[2]))
	}
	return out
}

// lab is CIELAB under D65.
func (c rgb) lab() (l, a, b float64) {
	f := func(v float64) float64 {
		if v > 216.0/24389 {
			return math.Cbrt(v)
		}
		return (24389.0/27*v + 16) / 116
	}
	x := f((0.4124564*c[0] + 0.3575761*c[1] + 0.1804375*c[2]) / 0.95047)
	y := f(0.2126729*c[0] + 0.7151522*c[1] + 0.0721750*c[2])
	z := f((0.0193339*c[0] + 0.1191920*c[1] + 0.9503041*c[2]) / 1.08883)
	return 116*y - 16, 500 * (x - y), 200 * (y - z)
}

// difference is the distance in CIELAB.
func difference(p, q rgb) float64 {
	l1, a1, b1 := p.lab()
	l2, a2, b2 := q.lab()
	return math.Hypot(l1-l2, math.Hypot(a1-a2, b1-b2))
}

// Nobody takes an engine for another by its colour, or a part of a bar for another, whichever cones they have.
func TestColoursAreDistinct(t *testing.T) {
	for theme, colours := range themes(t) {
		for kind, least := range map[string]float64{"c": 17, "p": 15} {
			n := 0
			for ; ; n++ {
				if _, ok := colours[fmt.Sprint(kind, n)]; !ok {
					break
				}
			}
			if want := map[string]int{"c": 6, "p": 7}[kind]; n != want {
				t.Errorf("%s: %d colours --%s, want %d", theme, n, kind, want)
			}
			for i := range n {
				for j := range i {
					for sight, m := range sights {
						a, b := colours[fmt.Sprint(kind, j)], colours[fmt.Sprint(kind, i)]
						if d := difference(a.seenBy(m), b.seenBy(m)); d < least {
							t.Errorf("%s, %s: --%s%d and --%s%d are %.1f apart, want %g", theme, sight, kind, j, kind,
								i, d, least)
						}
					}
				}
			}
		}
	}
}

// What is drawn stands out from the page, and every text can be read on what is behind it (WCAG 2.2, 1.4.11 and 1.4.3).
func TestContrast(t *testing.T) {
	for theme, colours := range themes(t) {
		check := func(front, back string, least float64) {
			f, ok1 := colours[front]
			b, ok2 := colours[back]
			if !ok1 || !ok2 {
				t.Errorf("%s: no colour --%s or --%s", theme, front, back)
			} else if c := contrast(f, b); c < least {
				t.Errorf("%s: --%s on --%s has %.2f, want %g", theme, front, back, c, least)
			}
		}
		for i := range 6 {
			check(fmt.Sprint("c", i), "page", 3)
		}
		for i := range 7 {
			check(fmt.Sprint("p", i), "page", 3)
		}
		for _, mark := range []string{"edge", "focus", "notice-edge", "dot"} {
			check(mark, "page", 3)
		}
		for _, text := range []string{"ink", "muted", "good", "bad"} {
			check(text, "page", 4.5)
		}
		for _, back := range []string{"faint", "notice", "differs"} {
			check("ink", back, 4.5)
		}
		check("muted", "faint", 4.5)
	}
}
