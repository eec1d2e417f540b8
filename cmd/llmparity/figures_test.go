package main

import (
	"bytes"
	"encoding/binary"
	"encoding/xml"
	"errors"
	"hash/crc32"
	"image/png"
	"io"
	"maps"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"llmparity/compare/comparetest"
	"llmparity/internal/kit/fault"
)

// Two browsers draw the same bytes from the same data: a run, one with a hostile engine name, and a memory log of
// another program. The second draws named figures only.
func TestFigures(t *testing.T) {
	browserTest(t)
	t.Parallel()
	root := t.TempDir()
	run := comparetest.Write(t, root, "two", comparetest.Native(2),
		comparetest.Measured(comparetest.Browser(1), comparetest.Page()))
	e := comparetest.Native(1)
	e.Cell.Engine = "</script><svg onload=alert(1)>\u202e\x00&" + strings.Repeat("long ", 2000)
	hostile := comparetest.Write(t, root, "hostile", e)
	rows, err := filepath.Abs(memoryLog)
	check(t, err)
	draw := func(dir string, figures ...string) map[string][]byte {
		well(t, program(t, slices.Concat([]string{"compare", run, hostile, rows, "--figures"}, figures)...))
		out := map[string][]byte{}
		for _, name := range filesIn(t, dir) {
			out[name] = []byte(readFile(t, filepath.Join(dir, name)))
		}
		return out
	}
	once := filepath.Join(root, "once")
	first := draw(once, once)
	for _, name := range []string{"fig-memory-webllm-run1", "fig-memory-llama-cpp", "fig-peaks", "fig-load", "fig-ttft",
		"fig-decode"} {
		drawn := slices.Sorted(maps.Keys(first))
		if !slices.ContainsFunc(drawn, func(file string) bool { return strings.HasPrefix(file, name) }) {
			t.Errorf("there is no %s among %q", name, drawn)
		}
	}
	if !bytes.Contains(first["fig-headline-memory.svg"], []byte("<pattern")) {
		t.Error("layers of a stack have their colours alone to tell them apart")
	}
	index := string(first["figures.md"])
	for name, text := range first {
		switch filepath.Ext(name) {
		case ".svg":
			high := checkSVG(t, name, text)
			checkPNG(t, name, first[strings.TrimSuffix(name, ".svg")+".png"], high)
			if !strings.Contains(index, "]("+name+")") || !safe.MatchString(name) {
				t.Errorf("%s is not in the list, or badly named", name)
			}
		case ".png", ".md":
		default:
			t.Errorf("%s should not be there", name)
		}
	}
	if n := strings.Count(index, "- Drawn from: "); n != (len(first)-1)/2 || unescaped.MatchString(index) {
		t.Errorf("the list has %d figures of %d", n, (len(first)-1)/2)
	}
	if strings.Contains(index, "as the report says") {
		t.Errorf("a figure does not say which columns it is drawn from:\n%s", index)
	}
	var names, files []string
	for name := range first {
		if figure := strings.TrimSuffix(name, ".svg"); figure != name && figure != "fig-load" {
			names, files = append(names, figure), append(files, name, figure+".png")
		}
	}
	twice := filepath.Join(root, "twice")
	again := draw(twice, append(names, "--figures-dir", twice)...)
	slices.Sort(files)
	delete(again, "figures.md")
	if got := slices.Sorted(maps.Keys(again)); !slices.Equal(got, files) {
		t.Fatalf("%q, want %q", got, files)
	}
	for _, name := range files {
		if !bytes.Equal(first[name], again[name]) {
			t.Errorf("%s differs", name)
		}
	}
}

// unescaped matches an HTML element in Markdown.
var unescaped = regexp.MustCompile(`(^|[^\\])<`)

var safe = regexp.MustCompile(`^fig[a-z0-9_-]{1,150}\.svg$`)

// checkSVG checks that a figure is self-contained, has a title and an axis with a unit, and returns its size in inches.
func checkSVG(t *testing.T, name string, text []byte) (size [2]float64) {
	t.Helper()
	d := xml.NewDecoder(bytes.NewReader(text))
	var words, title strings.Builder
	paths, within := 0, []string{}
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		switch e := token.(type) {
		case xml.StartElement:
			within = append(within, e.Name.Local)
			switch e.Name.Local {
			case "script", "style", "image", "foreignObject", "a", "use", "font-face", "animate", "set":
				t.Errorf("%s has a <%s>", name, e.Name.Local)
			case "path", "rect", "circle", "polygon", "polyline":
				paths++
			}
			for _, a := range e.Attr {
				if strings.HasPrefix(strings.ToLower(a.Name.Local), "on") || a.Name.Local == "href" ||
					strings.Contains(strings.ReplaceAll(a.Value, "url(#", ""), "url(") {
					t.Errorf("%s: %s %s=%q", name, e.Name.Local, a.Name.Local, a.Value)
				}
				if len(within) == 1 && (a.Name.Local == "width" || a.Name.Local == "height") {
					v, err := strconv.ParseFloat(strings.TrimSuffix(a.Value, "in"), 64)
					if err != nil || v < 1 || v > 20 {
						t.Errorf("%s: %s %q", name, a.Name.Local, a.Value)
					}
					size[map[string]int{"width": 0, "height": 1}[a.Name.Local]] = v
				}
			}
		case xml.EndElement:
			within = within[:len(within)-1]
		case xml.CharData:
			switch within := within[max(0, len(within)-1):]; {
			case slices.Equal(within, []string{"text"}):
				words.Write(e)
				words.WriteByte('\n')
			case slices.Equal(within, []string{"title"}):
				title.Write(e)
			}
		}
	}
	if paths < 4 {
		t.Errorf("%s has %d shapes", name, paths)
	}
	for _, want := range []string{"tiny", "weights f32"} {
		foreign := strings.Contains(name, "run1")
		if foreign {
			want = "model not known"
		}
		if !strings.Contains(words.String(), want) || !strings.Contains(title.String(), want) {
			t.Errorf("%s does not say %q: %s\n%s", name, want, &title, &words)
		}
	}
	if !regexp.MustCompile(`\((MiB|ms|tokens/s|%)\)|%|ms|MiB`).MatchString(words.String()) {
		t.Errorf("%s has no unit: %s", name, &words)
	}
	return size
}

// checkPNG checks a picture's size and resolution, and that it is not empty.
func checkPNG(t *testing.T, name string, text []byte, inches [2]float64) {
	t.Helper()
	picture, err := png.Decode(bytes.NewReader(text))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	b := picture.Bounds()
	if w, h := math.Round(inches[0]*300), math.Round(inches[1]*300); math.Abs(float64(b.Dx())-w) > 0 ||
		math.Abs(float64(b.Dy())-h) > 1 {
		t.Errorf("%s: %d × %d pixels, want %g × %g", name, b.Dx(), b.Dy(), w, h)
	}
	colours := map[[3]uint32]bool{}
	for y := 0; y < b.Dy(); y += 7 {
		for x := 0; x < b.Dx(); x += 3 {
			r, g, bl, a := picture.At(x, y).RGBA()
			if a != 0xffff {
				t.Fatalf("%s is transparent", name)
			}
			colours[[3]uint32{r, g, bl}] = true
		}
	}
	if len(colours) < 5 || !colours[[3]uint32{0xffff, 0xffff, 0xffff}] {
		t.Errorf("%s has %d colours", name, len(colours))
	}
	at := bytes.Index(text, []byte("pHYs"))
	if at < 0 || at > bytes.Index(text, []byte("IDAT")) {
		t.Fatalf("%s does not say how large its dots are", name)
	}
	data := text[at : at+13]
	if x, y := binary.BigEndian.Uint32(data[4:]), binary.BigEndian.Uint32(data[8:]); x != 11811 || y != 11811 ||
		data[12] != 1 ||
		binary.BigEndian.Uint32(text[at-4:]) != 9 || binary.BigEndian.Uint32(text[at+13:]) != crc32.ChecksumIEEE(data) {
		t.Errorf("%s: pHYs %x", name, text[at-4:at+17])
	}
}

// Figures need a browser, the report does not. Wrong names are refused before the browser is needed.
func TestFiguresWithoutABrowser(t *testing.T) {
	lightTest(t)
	root := t.TempDir()
	run := comparetest.Write(t, root, "one", comparetest.Native(1))
	dir := filepath.Join(root, "figures")
	t.Setenv("LLMPARITY_CHROME", filepath.Join(root, "no-browser"))
	fails(t, fault.NoChrome, "figures need a browser: ", "report", run, "--figures", dir)
	if there(dir) || !there(filepath.Join(run, "report.html")) {
		t.Error("a folder is left, or there is no report")
	}
	fails(t, fault.Usage, "require --figures", "report", run, "--all-launches")
	fails(t, fault.Usage, `the run has no figure "decod"; it has `, "report", run, "--figures", "ttft", "decod")
}
