package byhand

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/draw"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	qr "github.com/piglig/go-qr"

	"llmparity/browser/byhand/visitor"
	"llmparity/browser/driver"
	"llmparity/internal/engine"
	"llmparity/internal/host/child/childtest"
	"llmparity/internal/kit/check"
	"llmparity/internal/models/tiny"
	"llmparity/internal/record"
)

func TestMain(m *testing.M) { childtest.Main(m) }

type runs func(ctx context.Context, hand driver.Hand, args []string, events, notes io.Writer) error

// started serves the page.
func started(t *testing.T, plan []string, run runs) *Server {
	t.Helper()
	s, err := Start(Options{Engines: []Engine{{Name: "stub", Title: "the stub", Args: []string{"--engines=stub"}}},
		Models: []string{"tiny"}, Out: t.TempDir(), Plan: plan, Say: func(text string) { t.Log(text) }, Run: run})
	check.Err(t, err)
	t.Cleanup(func() { check.Also(t, s.Close()) })
	return s
}

// somebody is a page that answers as a test says.
type somebody struct {
	*testing.T
	socket *websocket.Conn
}

func opened(t *testing.T, s *Server, about map[string]any) somebody {
	t.Helper()
	at, err := url.Parse(s.Base)
	check.Err(t, err)
	socket, _, err := websocket.Dial(t.Context(), "ws://"+at.Host+at.Path+"/line", &websocket.DialOptions{
		HTTPHeader: http.Header{"Origin": {"http://" + at.Host}}})
	check.Err(t, err)
	t.Cleanup(func() { _ = socket.CloseNow() })
	p := somebody{t, socket}
	all := map[string]any{"id": "one", "agent": "Mozilla/5.0 Chrome/156.0", "platform": "Test",
		"now": time.Now().UnixMilli()}
	for key, value := range about {
		all[key] = value
	}
	p.says("about", all)
	return p
}

func (p somebody) says(kind string, content any) {
	p.Helper()
	text, err := json.Marshal(map[string]any{kind: content})
	check.Err(p, err)
	check.Err(p, p.socket.Write(p.Context(), websocket.MessageText, text))
}

// hears waits for a message of a kind.
func (p somebody) hears(kind string) json.RawMessage {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.Context(), time.Minute) // a watchdog
	defer cancel()
	for {
		_, text, err := p.socket.Read(ctx)
		check.Err(p, err)
		var m map[string]json.RawMessage
		check.Err(p, json.Unmarshal(text, &m))
		if m[kind] != nil {
			return m[kind]
		}
	}
}

func (p somebody) hearsText(kind string, want ...string) {
	p.Helper()
	is := string(p.hears(kind))
	for _, w := range want {
		if !strings.Contains(is, w) {
			p.Errorf("%s is %s, want %q in it", kind, is, w)
		}
	}
}

// chosen is a request, with changes.
func chosen(change map[string]any) map[string]any {
	r := map[string]any{"engine": "stub", "model": "tiny", "prompt": "a", "maxTokens": 4, "context": 64,
		"launches": 1, "thread": "page"}
	for key, value := range change {
		r[key] = value
	}
	return r
}

func nothing(context.Context, driver.Hand, []string, io.Writer, io.Writer) error { return nil }

// What a page sends is a value: it names only what is offered, and cannot become a flag.
func TestWhatAPageMayAsk(t *testing.T) {
	var got []string
	s := started(t, nil, func(_ context.Context, _ driver.Hand, args []string, _, _ io.Writer) error {
		got = args
		return nil
	})
	p := opened(t, s, nil)
	for name, c := range map[string]struct {
		change map[string]any
		want   string
	}{
		"a file of the machine": {map[string]any{"model": "/etc/passwd"}, `there is no model`},
		"a flag":                {map[string]any{"model": "--out=/etc"}, `there is no model`},
		"markup":                {map[string]any{"model": "<img src=x onerror=alert(1)>"}, `there is no model`},
		"an engine":             {map[string]any{"engine": "exec:rm"}, `there is no engine`},
		"a thread":              {map[string]any{"thread": "x"}, `there is no thread`},
		"no prompt":             {map[string]any{"prompt": ""}, `the prompt is empty`},
		"many launches":         {map[string]any{"launches": 1 << 30}, `launches must be 1 to 1000`},
		"no tokens":             {map[string]any{"maxTokens": 0}, `must be 1 to`},
		"many tokens":           {map[string]any{"context": 1 << 40}, `must be 1 to`},
	} {
		t.Run(name, func(t *testing.T) {
			p.says("start", chosen(c.change))
			p.hearsText("ended", c.want)
			if got != nil {
				t.Errorf("it runs %q", got)
			}
		})
	}
	hostile := "--out=/etc\n\"'<script>"
	p.says("start", chosen(map[string]any{"prompt": hostile}))
	p.hears("ended")
	if want := "--prompt=" + hostile; len(got) < 3 || got[2] != want {
		t.Errorf("it runs %q, want %q as one argument", got, want)
	}
}

// sends puts a model's file.
func sends(t *testing.T, s *Server, name string, size int64, body io.Reader) (status int, text string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, s.Base+"/model/"+url.PathEscape(name), body)
	check.Err(t, err)
	at, _ := url.Parse(s.Base) // it was parsed before
	r.Header.Set("Origin", "http://"+at.Host)
	r.ContentLength = size
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	answer, err := client.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer answer.Body.Close()
	said, _ := io.ReadAll(answer.Body)
	return answer.StatusCode, strings.TrimSpace(string(said))
}

// A file that cannot be used is refused with one line, and leaves nothing.
func TestUploads(t *testing.T) {
	s := started(t, nil, nothing)
	path := filepath.Join(t.TempDir(), "tiny.gguf")
	check.Err(t, tiny.WriteFile(path))
	good, err := os.ReadFile(path)
	check.Err(t, err)
	for name, c := range map[string]struct {
		body []byte
		size int64
		want string
	}{
		"picture.gguf": {[]byte("\x89PNG and more"), -1, "it is not a GGUF file"},
		"empty.gguf":   {nil, -1, "not known"},
		"short.gguf":   {good[:len(good)/2], -1, "cannot be used"},
		"large.gguf":   {good, 1 << 39, "large.gguf has 512.00 GiB, and "},
		"huge.gguf":    {good, 1 << 50, "too much"},
	} {
		size := c.size
		if size < 0 {
			size = int64(len(c.body))
		}
		rest := &endless{size - int64(len(c.body))}
		status, text := sends(t, s, name, size, io.MultiReader(bytes.NewReader(c.body), rest))
		ended := strings.Contains(text, "broken pipe") || strings.Contains(text, "reset") // before all was sent
		said := strings.Contains(text, c.want) && !strings.Contains(text, "\n")
		if status != http.StatusUnprocessableEntity && !ended || status != 0 && !said {
			t.Errorf("%s: %d %q, want %q", name, status, text, c.want)
		}
	}
	if left, err := filepath.Glob(filepath.Join(s.scratch, "*")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	status, text := sends(t, s, "../../my model<b>.gguf", int64(len(good)), bytes.NewReader(good))
	if status != http.StatusOK || text != `{"model":"my model\u003cb\u003e.gguf"}` {
		t.Errorf("%d %q", status, text)
	}
	at := s.uploads["my model<b>.gguf"]
	if !strings.HasPrefix(at, s.scratch) || filepath.Base(at) != "my-model-b-.gguf" {
		t.Errorf("it is at %q", at)
	}
}

// endless is a body of so many bytes.
type endless struct{ left int64 }

func (e *endless) Read(p []byte) (int, error) {
	if e.left <= 0 {
		return 0, io.EOF
	}
	n := min(int64(len(p)), e.left)
	e.left -= n
	return int(n), nil
}

// waits opens a frame and waits for an answer that does not come.
func waits(ctx context.Context, hand driver.Hand, _ []string, events, _ io.Writer) error {
	tab, err := hand.Tab(ctx, driver.Options{})
	if err != nil {
		return err
	}
	defer tab.Close()
	fmt.Fprintln(events, `{"kind":"launched"}`)
	_, err = tab.Evaluate(ctx, driver.PageThread, "llmparity.generate({})")
	return err
}

// A page that is closed in mid-run, and one that stops, end their own measurement, with a line.
func TestPagesThatLeave(t *testing.T) {
	ends := make(chan error, 2)
	s := started(t, nil, func(ctx context.Context, hand driver.Hand, args []string, events, notes io.Writer) error {
		err := waits(ctx, hand, args, events, notes)
		ends <- err
		return err
	})
	closed := opened(t, s, nil)
	closed.says("start", chosen(nil))
	closed.hears("call")
	other := opened(t, s, nil)
	other.hears("hello")
	other.says("start", chosen(nil))
	other.hearsText("note", "Another page on this device is measuring")
	check.Err(t, closed.socket.Close(websocket.StatusGoingAway, ""))
	if err := <-ends; engine.ClassOf(err) != record.Crash || !strings.Contains(err.Error(), visitor.ErrClosed.Error()) {
		t.Errorf("a closed page: %v", err)
	}
	other.hears("call") // its turn has come
	other.says("stop", true)
	if err := <-ends; !errors.Is(err, driver.ErrClosed) && !errors.Is(err, context.Canceled) {
		t.Errorf("a page that stops: %v", err)
	}
	other.hearsText("ended", "stopped by hand")
}

// Each browser runs the plan once, and one whose clock is off takes part.
func TestCollect(t *testing.T) {
	runs := func(_ context.Context, _ driver.Hand, args []string, events, _ io.Writer) error {
		if args[0] != "plan.yaml" {
			return fmt.Errorf("it runs %q", args)
		}
		dir := strings.TrimPrefix(args[len(args)-1], "--out=") + "/run-" + fmt.Sprint(time.Now().UnixNano())
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
		fmt.Fprintf(events, "{\"kind\":\"recording\",\"record\":%q}\n", dir)
		return os.WriteFile(filepath.Join(dir, "summary.csv"), []byte("engine,model\nstub,tiny\n"), 0o600)
	}
	s := started(t, []string{"plan.yaml"}, runs)
	collected := make(chan []string)
	go func() { collected <- s.Collect(t.Context(), 2, time.Minute) }()
	one := opened(t, s, nil)
	one.hearsText("hello", `"plan":true`)
	one.hearsText("runs", `"engine":"stub"`, `"who":"Chrome/156.0 on Test"`)
	again := opened(t, s, nil)
	again.hearsText("ended", "has run the plan already")
	late := opened(t, s, map[string]any{"id": "two", "now": time.Now().Add(-3 * time.Hour).UnixMilli()})
	late.hearsText("note", "clock differs from llmparity's by 3h0m")
	late.hears("runs")
	if dirs := <-collected; len(dirs) != 2 || filepath.Dir(dirs[0]) != s.Out {
		t.Errorf("collected %v", dirs)
	}
}

// The code in the terminal leads to the page, as a reader of such codes sees it.
func TestCode(t *testing.T) {
	const address = "https://192.168.178.23:8443/Z5AOBCCTYDR6PLPCUSUQQ3I7DU/"
	rows := strings.Split(strings.TrimSuffix(code(address), "\n"), "\n")
	const dot = 4 // pixels of the picture
	picture := image.NewGray(image.Rect(0, 0, dot*len([]rune(rows[0])), 2*dot*len(rows)))
	for y, row := range rows {
		for x, r := range []rune(row) {
			for n, light := range []bool{r == '█' || r == '▀', r == '█' || r == '▄'} {
				if light {
					at := image.Rect(dot*x, dot*(2*y+n), dot*(x+1), dot*(2*y+n+1))
					draw.Draw(picture, at, image.White, image.Point{}, draw.Src)
				}
			}
		}
	}
	if got, err := qr.Decode(picture); err != nil || got != address {
		t.Errorf("%q, %v", got, err)
	}
}
