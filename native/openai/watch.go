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
)

// forwarders pass on what another process answers, here or elsewhere: their memory is not the server's.
var forwarders = []string{"ssh", "sshd", "docker-proxy", "kubectl", "socat", "rootlesskit", "slirp4netns", "nginx",
	"haproxy", "caddy", "envoy"}

// watch begins to sample the server, where that can be done, and says once where it can't.
func (s *session) watch(ctx context.Context) {
	if err := s.watchProcesses(ctx); err != nil {
		engine.Warn(s.probe, "server-not-sampled", "no memory of the server at %s is sampled: %v", s.client.at.host, err)
	}
	if !s.server.router && !s.server.loading {
		s.watchMetrics(ctx) // else once it is known what to ask
	}
}

// watchMetrics begins to read what the server says of itself.
func (s *session) watchMetrics(ctx context.Context) {
	if s.asked {
		return
	}
	s.asked = true
	m := &metrics{client: s.client, pid: s.pid, who: s.server.title(), query: s.server.of(s.model)}
	first := record.NewSample()
	err := m.Read(ctx, &first)
	if err == nil {
		s.detach = append(s.detach, s.probe.Attach(m))
		return
	}
	var r *refusal
	switch {
	// it has none
	case ctx.Err() != nil, errors.As(err, &r) && r.status == http.StatusNotFound && s.server.kind != llamaServer:
	case s.server.kind == llamaServer && errors.As(err, &r):
		s.probe.Event(record.Event{At: time.Now(),
			Text: "the server has no /metrics: a llama-server that is started with --metrics has"})
	default:
		s.probe.Event(record.Event{At: time.Now(), Text: "/metrics can't be read: " + s.client.hide(err.Error())})
	}
}

// watchProcesses samples the tree of who answers at the server's address.
func (s *session) watchProcesses(ctx context.Context) error {
	if !s.client.at.local {
		return errors.New("its address is none of this machine's")
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
		return fmt.Errorf("%s (process %d) listens there, which passes on to another", name, pid)
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

// above says which process was taken for the server's first, where it is not the one that listens.
func above(root, pid int) string {
	if root == pid {
		return ", and is sampled with its descendants"
	}
	name, _ := role(root, proc.CommandLine(root))
	return fmt.Sprintf("; it belongs to process %d (%s), which is sampled with its descendants", root, name)
}

// role gives a process's program, and what it is to a server: its parts do different things in processes of their own.
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

// listens tells whether anybody takes connections at the server's address. Through a proxy that can't be told.
func (c *client) listens(ctx context.Context) bool {
	d := net.Dialer{Timeout: time.Second}
	conn, err := d.DialContext(ctx, "tcp", c.at.host)
	if err != nil {
		return ctx.Err() != nil
	}
	_ = conn.Close() // it was only to be seen
	return true
}
