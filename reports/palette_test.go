package reports_test

import (
	"fmt"
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
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
	css, err := os.ReadFile("page/report.css")
	if err != nil {
		t.Fatal(err)
	}
	light, dark, found := strings.Cut(string(css), "@media screen and (prefers-color-scheme: dark)")
	if !found {
		t.Fatal("the style sheet has no dark colours")
	}
	dark, _, _ = strings.Cut(dark, "}\n}")
	out := map[string]map[string]rgb{"light": {}, "dark": {}}
	for theme, text := range map[string]string{"light": light, "dark": dark} {
		for _, m := range regexp.MustCompile(`--([a-z0-9-]+): #([0-9a-f]{6});`).FindAllStringSubmatch(text, -1) {
			n, err := strconv.ParseUint(m[2], 16, 32)
			if err != nil {
				t.Fatal(err)
			}
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

// difference is CIEDE2000.
func difference(p, q rgb) float64 {
	l1, a1, b1 := p.lab()
	l2, a2, b2 := q.lab()
	return ciede2000(l1, a1, b1, l2, a2, b2)
}

func ciede2000(l1, a1, b1, l2, a2, b2 float64) float64 {
	sin, cos := func(deg float64) float64 { return math.Sin(deg * math.Pi / 180) },
		func(deg float64) float64 { return math.Cos(deg * math.Pi / 180) }
	seventh := func(c float64) float64 { return math.Sqrt(math.Pow(c, 7) / (math.Pow(c, 7) + math.Pow(25, 7))) }
	g := 0.5 * (1 - seventh((math.Hypot(a1, b1)+math.Hypot(a2, b2))/2))
	a1, a2 = a1*(1+g), a2*(1+g)
	c1, c2 := math.Hypot(a1, b1), math.Hypot(a2, b2)
	angle := func(a, b float64) float64 { return math.Mod(math.Atan2(b, a)*180/math.Pi+360, 360) }
	h1, h2 := angle(a1, b1), angle(a2, b2)
	dh, mean := 0.0, h1+h2
	if c1*c2 != 0 {
		switch dh = h2 - h1; {
		case dh > 180:
			dh -= 360
		case dh < -180:
			dh += 360
		}
		switch {
		case math.Abs(h1-h2) <= 180:
			mean /= 2
		case mean < 360:
			mean = (mean + 360) / 2
		default:
			mean = (mean - 360) / 2
		}
	}
	dH := 2 * math.Sqrt(c1*c2) * sin(dh/2)
	l, c := (l1+l2)/2, (c1+c2)/2
	t := 1 - 0.17*cos(mean-30) + 0.24*cos(2*mean) + 0.32*cos(3*mean+6) - 0.20*cos(4*mean-63)
	sl := 1 + 0.015*(l-50)*(l-50)/math.Sqrt(20+(l-50)*(l-50))
	sc, sh := 1+0.045*c, 1+0.015*c*t
	rt := -2 * seventh(c) * sin(60*math.Exp(-math.Pow((mean-275)/25, 2)))
	return math.Sqrt(math.Pow((l2-l1)/sl, 2) + math.Pow((c2-c1)/sc, 2) + math.Pow(dH/sh, 2) + rt*(c2-c1)/sc*dH/sh)
}

// The formula against pairs of its authors (Sharma, Wu, Dalal 2005).
func TestColourDifference(t *testing.T) {
	for _, x := range [][7]float64{{50, 2.6772, -79.7751, 50, 0, -82.7485, 2.0425},
		{50, -1.3802, -84.2814, 50, 0, -82.7485, 1.0000}, {50, 0, 0, 50, -1, 2, 2.3669},
		{50, 2.4900, -0.0010, 50, -2.4900, 0.0009, 7.1792}, {50, 2.5, 0, 73, 25, -18, 27.1492},
		{2.0776, 0.0795, -1.1350, 0.9033, -0.0636, -0.5514, 0.9082}} {
		if got := ciede2000(x[0], x[1], x[2], x[3], x[4], x[5]); math.Abs(got-x[6]) > 0.0001 {
			t.Errorf("%v: %.4f", x, got)
		}
	}
}

// Nobody takes an engine for another by its colour, or a part of a bar for another, whichever cones they have.
func TestColoursAreDistinct(t *testing.T) {
	for theme, colours := range themes(t) {
		for kind, least := range map[string]float64{"c": 14, "p": 12} {
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
