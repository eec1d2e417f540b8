package firefox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/coder/websocket"

	"llmparity/internal/kit/fault"
)

// conn is a connection to Firefox by WebDriver BiDi: commands and their answers by number, and events.
type conn struct {
	socket *websocket.Conn
	hear   func(method string, params json.RawMessage) // on the goroutine that reads
	done   chan struct{}                               // closed when no answer can come any more

	mu      sync.Mutex
	last    int
	waiting map[int]chan<- message
}

// message is what Firefox sends: an event has a method, an answer the number of its command.
type message struct {
	Type    string          `json:"type"` // success, error or event
	ID      int             `json:"id"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
	Result  json.RawMessage `json:"result"`
	Error   string          `json:"error"`
	Message string          `json:"message"`
}

// refusal is a command that Firefox answered with an error.
type refusal struct{ method, kind, text string }

func (r *refusal) Error() string { return fmt.Sprintf("%s: %s: %s", r.method, r.kind, r.text) }

// errGone is the error of calls whose connection has ended.
var errGone = errors.New("the connection to Firefox has ended")

// dial connects, without the header Origin, which Firefox would refuse.
func dial(ctx context.Context, address string, hear func(string, json.RawMessage)) (*conn, error) {
	socket, answer, err := websocket.Dial(ctx, address, nil)
	if err != nil {
		return nil, fmt.Errorf("connecting to Firefox: %w", err)
	}
	if answer.Body != nil {
		_ = answer.Body.Close() // it has none
	}
	socket.SetReadLimit(-1)
	c := &conn{socket: socket, hear: hear, done: make(chan struct{}), waiting: map[int]chan<- message{}}
	go c.read()
	return c, nil
}

func (c *conn) read() {
	defer close(c.done)
	for {
		_, text, err := c.socket.Read(context.Background()) // close ends it
		if err != nil {
			return
		}
		var m message
		if json.Unmarshal(text, &m) != nil {
			continue // of no command
		}
		if m.Type == "event" {
			c.hear(m.Method, m.Params)
			continue
		}
		c.mu.Lock()
		answer := c.waiting[m.ID]
		delete(c.waiting, m.ID)
		c.mu.Unlock()
		if answer != nil {
			answer <- m
		}
	}
}

// call sends a command and waits for its result, which is parsed unless it is nil.
func (c *conn) call(ctx context.Context, method string, params, result any) error {
	answer := make(chan message, 1)
	c.mu.Lock()
	c.last++
	id := c.last
	c.waiting[id] = answer
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.waiting, id)
	}()
	text, err := json.Marshal(map[string]any{"id": id, "method": method, "params": params})
	if err != nil {
		return fmt.Errorf("encoding %s: %w", method, err)
	}
	// Not with ctx, whose end in the middle of a message would end the connection.
	if err := c.socket.Write(context.WithoutCancel(ctx), websocket.MessageText, text); err != nil {
		return fmt.Errorf("%w: %w", errGone, err)
	}
	select {
	case m := <-answer:
		if m.Type == "error" {
			return &refusal{method, m.Error, fault.OneLine(m.Message)}
		}
		if result == nil {
			return nil
		}
		if err := json.Unmarshal(m.Result, result); err != nil {
			return fmt.Errorf("reading the answer to %s: %w", method, err)
		}
		return nil
	case <-c.done:
		return errGone
	case <-ctx.Done():
		return ctx.Err()
	}
}

// close ends the connection and waits for its goroutine.
func (c *conn) close() {
	_ = c.socket.CloseNow() // Firefox ends, too
	<-c.done
}
