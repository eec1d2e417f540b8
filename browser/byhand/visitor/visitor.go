// Package visitor makes a driver of a browser that a person opened. The person's page takes the place of DevTools: it
// has a frame for each launch, in which it opens the page of package browser, and passes on what that is asked and what
// it reports. So a Visitor is a driver.Hand, and a frame is a driver.Tab. What only DevTools see is absent. The
// processes of a browser on this machine are found by its connection, and sampled from outside.
package visitor

import (
	"context"
	_ "embed" // for Script
	"fmt"
	"net"
	"net/http"
	"regexp"
	"sync"

	"llmparity/browser/driver"
	"llmparity/browser/gate"
	"llmparity/browser/serve"
	"llmparity/internal/kit/fault"
)

// Script is the page's end, a module named line.js.
//
//go:embed line.js
var Script string

// About is what the page knows of its browser and device.
type About struct {
	ID       string  `json:"id"` // of the browser, which keeps it
	Agent    string  `json:"agent"`
	Platform string  `json:"platform"`
	Cores    int     `json:"cores"`
	Memory   float64 `json:"memory"` // GiB, rounded by the browser; 0: not told
	Screen   string  `json:"screen"`
	Adapter  string  `json:"adapter"`
	Now      float64 `json:"now"` // ms since the Unix epoch
}

// Visitor is a page that is open somewhere.
type Visitor struct {
	line         *line
	ours, theirs net.Addr // ends of the connection
	serve        Serving
	mu           sync.Mutex
	about        About
	tab          *Tab // nil: no frame is open
}

var _ driver.Hand = (*Visitor)(nil)

// Serving serves a site to a visitor.
type Serving func(site http.Handler) (*serve.Server, error)

// Accept accepts the connection of a page until ctx ends. If it fails, the request was answered.
func Accept(ctx context.Context, w http.ResponseWriter, r *http.Request, serve Serving) (*Visitor, error) {
	l, err := dialled(ctx, w, r)
	if err != nil {
		return nil, err
	}
	v := &Visitor{line: l, serve: serve}
	v.ours, v.theirs = gate.Ends(r.Context())
	return v, nil
}

// Read calls hear with what the page says by itself, which must be fast, until the page is closed.
func (v *Visitor) Read(hear func(*Message)) {
	v.line.read(func(m *Message) {
		v.take(m)
		hear(m)
	})
	v.line.end(ErrClosed)
	_ = v.line.socket.CloseNow() // it may be closed already
}

// take takes what is about the browser or the frame.
func (v *Visitor) take(m *Message) {
	if m.About != nil {
		a := m.About
		for _, text := range []*string{&a.ID, &a.Agent, &a.Platform, &a.Screen, &a.Adapter} {
			*text = Limited(fault.OneLine(*text), 300)
		}
	}
	v.mu.Lock()
	tab := v.tab
	if m.About != nil {
		v.about = *m.About
	}
	v.mu.Unlock()
	switch {
	case tab == nil:
	case m.Report != "":
		tab.reported(m.Report)
	case m.Threw != "":
		tab.threw(m.Threw)
	case m.Said != "":
		tab.said(m.Said)
	}
}

// Ctx ends when the page is closed.
func (v *Visitor) Ctx() context.Context { return v.line.ctx }

// Send sends the page a message, which is an object with one key.
func (v *Visitor) Send(m any) { v.line.send(m) }

// Note shows a remark.
func (v *Visitor) Note(text string) { v.Send(map[string]string{"note": text}) }

// Lose ends what is measured: the page has freed the engine's memory by itself.
func (v *Visitor) Lose() {
	v.mu.Lock()
	tab := v.tab
	v.mu.Unlock()
	if tab != nil {
		tab.Lose(driver.ErrClosed)
	}
}

// ID is of the browser; empty: it keeps none.
func (v *Visitor) ID() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.about.ID
}

// Machine is the machine that the browser is on.
func (v *Visitor) Machine() string {
	name, _, _ := net.SplitHostPort(v.theirs.String())
	return name
}

// Who names the browser and its device.
func (v *Visitor) Who() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return fmt.Sprintf("%s on %s", product(v.about.Agent), v.about.Platform)
}

var products = []struct {
	name string
	of   *regexp.Regexp
}{
	{"Edge", regexp.MustCompile(`Edg\w*/([\d.]+)`)}, {"Opera", regexp.MustCompile(`OPR/([\d.]+)`)},
	{"Samsung Internet", regexp.MustCompile(`SamsungBrowser/([\d.]+)`)},
	{"Firefox", regexp.MustCompile(`(?:Firefox|FxiOS)/([\d.]+)`)},
	{"Chrome", regexp.MustCompile(`(?:Chrome|CriOS)/([\d.]+)`)},
	{"Safari", regexp.MustCompile(`Version/([\d.]+).*Safari/`)},
}

// product is the browser that a user agent names.
func product(agent string) string {
	for _, p := range products {
		if m := p.of.FindStringSubmatch(agent); m != nil {
			return p.name + "/" + m[1]
		}
	}
	return "an unknown browser"
}

// Serve serves a site to this page.
func (v *Visitor) Serve(site http.Handler) (*serve.Server, error) { return v.serve(site) }

// Limited is the beginning of a text.
func Limited(text string, most int) string {
	if r := []rune(text); len(r) > most {
		return string(r[:most])
	}
	return text
}
