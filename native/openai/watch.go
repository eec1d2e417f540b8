package openai

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"llmparity/internal/record"
	"llmparity/internal/sample"
	"llmparity/internal/sample/proc"
	"llmparity/native/launch"
	"llmparity/native/wire"
)

// watchMetrics starts reading /metrics.
func (s *session) watchMetrics(ctx context.Context) {
	_, err := s.client.metrics(ctx)
	if err == nil {
		source := record.Source{Role: "server", Method: MethodMetrics, PID: s.pid, Every: metricsEvery, Waits: true,
			Sees: fmt.Sprintf("what %s reports at /metrics (not measured): requests, KV cache, preemptions, tokens since its start "+
				"(the sum over replicas; for ratios the highest)", s.server.title()),
			Blind: "everything else; changes between two of its updates"}
		s.detach = append(s.detach, s.probe.Attach(&sample.Func{Values: s.client.metrics, Source: source}))
		return
	}
	r := wire.RefusalOf(err)
	switch {
	// it has no /metrics
	case ctx.Err() != nil, r != nil && r.Status == http.StatusNotFound && s.server.kind != llamaServer:
	case s.server.kind == llamaServer && r != nil:
		s.probe.Event(record.Event{At: time.Now(),
			Text: "the server has no /metrics; start llama-server with --metrics"})
	default:
		s.probe.Event(record.Event{At: time.Now(), Text: "/metrics cannot be read: " + s.client.Hide(err.Error())})
	}
}

// watchProcesses samples the process tree that listens at the server's address.
func (s *session) watchProcesses(ctx context.Context) error {
	pid, name, err := launch.Listener(ctx, s.client.at.host, s.client.at.local)
	if err != nil {
		return err
	}
	root := proc.Root(pid)
	s.tree, err = proc.NewTree(root, role, s.probe.Attach, false)
	if err != nil {
		return err
	}
	s.pid = root
	s.probe.Event(record.Event{At: time.Now(),
		Text: fmt.Sprintf("process %d (%s) listens at %s; process %d and its descendants are sampled", pid, name,
			s.client.at.host, root)})
	return nil
}

// role returns a process's role in a server that consists of several processes.
func role(line []string) string {
	all := strings.ToLower(strings.Join(line, " "))
	for _, part := range []struct{ mark, role string }{
		{"enginecore", "engine"}, {"::worker", "worker"}, {"sglang::scheduler", "worker"},
		{"text-generation-server", "worker"}, {" runner ", "runner"},
	} {
		if strings.Contains(all, part.mark) {
			return part.role
		}
	}
	return "server"
}

// listens reports whether anything accepts connections at the server's address. Through a proxy that is unknown.
func (c *client) listens(ctx context.Context) bool {
	d := net.Dialer{Timeout: time.Second}
	conn, err := d.DialContext(ctx, "tcp", c.at.host)
	if err != nil {
		return ctx.Err() != nil
	}
	_ = conn.Close() // only a probe
	return true
}
