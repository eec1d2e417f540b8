package byhand

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/coder/websocket"

	"llmparity/browser/driver"
	"llmparity/browser/gate"
	"llmparity/internal/kit/fault"
)

// toPage is a message to the page; one part of it is set.
type toPage struct {
	Hello  *hello             `json:"hello,omitempty"`
	Open   string             `json:"open,omitempty"` // opens this path in a new frame; answered
	Shut   bool               `json:"shut,omitempty"` // removes the frame; answered
	ID     int                `json:"id,omitempty"`
	Call   string             `json:"call,omitempty"` // calls this in a thread of the frame; answered
	Thread driver.Thread      `json:"thread,omitempty"`
	Event  map[string]any     `json:"event,omitempty"` // of the run
	Text   string             `json:"text,omitempty"`  // generated so far
	Host   map[string]float64 `json:"host,omitempty"`  // RSS by role, in MiB
	Runs   []Run              `json:"runs,omitempty"`
	Note   string             `json:"note,omitempty"`
	Ended  *ended             `json:"ended,omitempty"`
}

// hello is what the page has to know.
type hello struct {
	Engines []Engine `json:"engines"`
	Models  []string `json:"models"`
	Plan    bool     `json:"plan"` // it runs the plan by itself
	Runs    []Run    `json:"runs"`
}

// ended is how a measurement ended.
type ended struct {
	Error string `json:"error,omitempty"` // a line
}

// fromPage is a message from the page; one part of it is set.
type fromPage struct {
	About  *About          `json:"about"`
	ID     int             `json:"id"` // of what is answered
	JSON   json.RawMessage `json:"json"`
	Thrown *string         `json:"thrown"`
	Report string          `json:"report"` // by the binding
	Threw  string          `json:"threw"`
	Said   string          `json:"said"`
	Start  *Request        `json:"start"`
	Stop   bool            `json:"stop"`
}

// Bounds of the line: the size of a message, such as a long text, and the time for which the page may take none.
const (
	mostMessage = 16 << 20
	sendTime    = 20 * time.Second
)

// line is the connection to a page that is open.
type line struct {
	socket *websocket.Conn
	ctx    context.Context
	end    context.CancelCauseFunc

	mu      sync.Mutex
	last    int
	waiting map[int]chan<- fromPage
}

var errClosed = errors.New("the page was closed or loaded again, or its connection ended")

// connect is the page's end of the line.
func (s *Server) connect(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	ends := s.ctx.Err() != nil
	if !ends {
		s.ended.Add(1)
		defer s.ended.Done()
	}
	s.mu.Unlock()
	if ends {
		return
	}
	socket, err := websocket.Accept(w, r, nil) // it compares the origin, too
	if err != nil {
		return // it has answered
	}
	socket.SetReadLimit(mostMessage)
	l := &line{socket: socket, waiting: map[int]chan<- fromPage{}}
	l.ctx, l.end = context.WithCancelCause(s.ctx)
	v := &visitor{server: s, line: l}
	v.ours, v.theirs = gate.Ends(r.Context())
	s.mu.Lock()
	s.open[l] = true
	s.mu.Unlock()
	l.read(v.hear)
	l.end(errClosed)
	s.mu.Lock()
	delete(s.open, l)
	s.mu.Unlock()
	_ = socket.CloseNow() // it may be closed already
}

// read passes on messages until the line ends. Answers go to who waits for them, after all that was sent before them.
func (l *line) read(hear func(*fromPage)) {
	for {
		_, text, err := l.socket.Read(l.ctx)
		if err != nil {
			return
		}
		var m fromPage
		if err := json.Unmarshal(text, &m); err != nil {
			return // not our page
		}
		if m.ID == 0 {
			hear(&m)
			continue
		}
		l.mu.Lock()
		answered := l.waiting[m.ID]
		delete(l.waiting, m.ID)
		l.mu.Unlock()
		if answered != nil {
			answered <- m
		}
	}
}

// send sends a message. A page that takes none for long is gone.
func (l *line) send(m *toPage) {
	text, err := json.Marshal(m)
	if err == nil {
		ctx, cancel := context.WithTimeout(l.ctx, sendTime)
		defer cancel()
		err = l.socket.Write(ctx, websocket.MessageText, text)
	}
	if err != nil {
		l.end(errClosed)
	}
}

// ask sends a message and waits for its answer.
func (l *line) ask(ctx context.Context, m *toPage) (json.RawMessage, error) {
	answered := make(chan fromPage, 1)
	l.mu.Lock()
	l.last++
	m.ID = l.last
	l.waiting[m.ID] = answered
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.waiting, m.ID)
	}()
	l.send(m)
	select {
	case a := <-answered:
		if a.Thrown != nil {
			return nil, &driver.Thrown{Text: fault.OneLine(*a.Thrown)}
		}
		return a.JSON, nil
	case <-l.ctx.Done():
		return nil, fmt.Errorf("asking the page: %w", context.Cause(l.ctx))
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
