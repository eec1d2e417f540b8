package openai

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"llmparity/internal/engine"
	"llmparity/internal/record"
	"llmparity/internal/sample/proc"
	"llmparity/native/wire"
)

// forwarders only pass on answers of another process; their memory is not the server's.
var forwarders = []string{"ssh", "sshd", "docker-proxy", "kubectl", "socat", "rootlesskit", "slirp4netns", "nginx",
	"haproxy", "caddy", "envoy"}

// watch starts sampling the server if that is possible, and warns if not.
func (s *session) watch(ctx context.Context) {
	if err := s.watchProcesses(ctx); err != nil {
		engine.Warn(s.probe, "server-not-sampled", "the memory of the server at %s is not sampled: %v", s.client.at.host, err)
	}
	s.watchMetrics(ctx)
}

// watchMetrics starts reading /metrics.
func (s *session) watchMetrics(ctx context.Context) {
	m := &metrics{client: s.client, pid: s.pid, who: s.server.title()}
	first := record.NewSample()
	err := m.Read(ctx, &first)
	if err == nil {
		s.detach = append(s.detach, s.probe.Attach(m))
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
	if !s.client.at.local {
		return errors.New("it is on another machine")
	}
	pid, err := proc.PIDOfListener(ctx, s.client.at.host)
	if err != nil {
		return err
	}
	if pid == os.Getpid() {
		return errors.New("it is part of this program")
	}
	name, _ := role(pid, proc.CommandLine(pid))
	if slices.Contains(forwarders, name) {
		return fmt.Errorf("process %d (%s) listens there and forwards to another process", pid, name)
	}
	root := proc.Root(pid)
	s.tree, err = proc.NewTree(root, func(pid int, _ string, line []string) string {
		_, r := role(pid, line)
		return r
	}, s.probe.Attach, proc.TreeOptions{})
	if err != nil {
		return err
	}
	s.pid = root
	s.probe.Event(record.Event{At: time.Now(),
		Text: fmt.Sprintf("process %d (%s) listens at %s", pid, name, s.client.at.host) + above(root, pid)})
	return nil
}

// above describes the root of the sampled process tree.
func above(root, pid int) string {
	if root == pid {
		return ", and is sampled with its descendants"
	}
	name, _ := role(root, proc.CommandLine(root))
	return fmt.Sprintf("; its ancestor, process %d (%s), is sampled with its descendants", root, name)
}

// role returns a process's program and its role in a server that consists of several processes.
func role(pid int, line []string) (program, role string) {
	role = "server"
	if len(line) == 0 {
		return fmt.Sprint(pid), role
	}
	program = filepath.Base(strings.Fields(line[0] + " ")[0])
	all := strings.ToLower(strings.Join(line, " "))
	for _, part := range []struct{ mark, role string }{
		{"enginecore", "engine"}, {"::worker", "worker"}, {"sglang::scheduler", "worker"},
		{"text-generation-server", "worker"}, {" runner ", "runner"},
	} {
		if strings.Contains(all, part.mark) {
			return program, part.role
		}
	}
	return program, role
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
