package visitor

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
	"llmparity/internal/kit/fault"
)

// asked is what a page is asked to do in its frame; one part of it is set. It answers.
type asked struct {
	ID     int           `json:"id"`
	Open   string        `json:"open,omitempty"` // opens this path in a new frame
	Shut   bool          `json:"shut,omitempty"` // removes the frame
	Call   string        `json:"call,omitempty"` // calls this in a thread of the frame
	Thread driver.Thread `json:"thread,omitempty"`
}

// Message is a message from the page; one part of it is set.
type Message struct {
	About  *About          `json:"about"`
	ID     int             `json:"id"` // of what is answered
	JSON   json.RawMessage `json:"json"`
	Thrown *string         `json:"thrown"`
	Report string          `json:"report"` // by the binding
	Threw  string          `json:"threw"`
	Said   string          `json:"said"`
	Start  json.RawMessage `json:"start"`
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
	waiting map[int]chan<- Message
}

// ErrClosed is why a page is lost that was open.
var ErrClosed = errors.New("the page was closed or loaded again, or its connection ended")

// dialled is the line of a request, which ends with ctx. If there is none, the request was answered.
func dialled(ctx context.Context, w http.ResponseWriter, r *http.Request) (*line, error) {
	socket, err := websocket.Accept(w, r, nil) // it compares the origin, too
	if err != nil {
		return nil, err
	}
	socket.SetReadLimit(mostMessage)
	l := &line{socket: socket, waiting: map[int]chan<- Message{}}
	l.ctx, l.end = context.WithCancelCause(ctx)
	return l, nil
}

// read passes on messages until the line ends. Answers go to who waits for them, after all that was sent before them.
func (l *line) read(hear func(*Message)) {
	for {
		_, text, err := l.socket.Read(l.ctx)
		if err != nil {
			return
		}
		var m Message
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
func (l *line) send(m any) {
	text, err := json.Marshal(m)
	if err == nil {
		ctx, cancel := context.WithTimeout(l.ctx, sendTime)
		defer cancel()
		err = l.socket.Write(ctx, websocket.MessageText, text)
	}
	if err != nil {
		l.end(ErrClosed)
	}
}

// ask sends a message and waits for its answer.
func (l *line) ask(ctx context.Context, m *asked) (json.RawMessage, error) {
	answered := make(chan Message, 1)
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
