package protocol

import (
	"context"
	"slices"
	"time"

	"llmparity/internal/depth"
	"llmparity/internal/engine"
	"llmparity/internal/record"
)

// profile is an engine's answer to a request with a profile.
type profile struct {
	Rows []struct {
		Phase  string `json:"phase"`
		Layer  *int   `json:"layer"`
		Module string `json:"module"` // in which the kernel ran; its name tells the role, else that of the kernel does
		Kernel string `json:"kernel"`
		Calls  int64  `json:"calls"`
		NS     int64  `json:"self_ns"`
		Bytes  int64  `json:"bytes"`
	} `json:"rows"`
	// Memory is what it held at moments and, in phases, the most.
	Memory []struct {
		At     string `json:"at"`
		Layer  *int   `json:"layer"`
		Module string `json:"module"` // whose memory it is; "": that of the process
		What   string `json:"what"`
		Bytes  int64  `json:"bytes"`
	} `json:"memory"`
	Wall  map[string]int64 `json:"wall_ns"` // of phases, where the request had others before them
	Files []string         `json:"files"`
	Notes []string         `json:"notes"`
}

var _ engine.DeepProfiler = (*session)(nil)

// Deep asks for a generation with a profile.
func (s *session) Deep(ctx context.Context, r engine.Request, prefix string) (depth.Profile, error) {
	c, done, err := s.use()
	if err != nil {
		return depth.Profile{}, err
	}
	defer done()
	if !s.hello.Caps.Profiles || s.engine.config.In != nil { // a container has another file system
		return depth.Profile{}, engine.ErrShallow
	}
	request := asked(r)
	request["profile"] = prefix
	var sampled []time.Time
	g := &generation{conn: c, hello: s.hello, request: r,
		Text: engine.Text{Token: func(t record.Token) { sampled = append(sampled, t.At) }}}
	got, k, err := c.ask(ctx, opGenerate, request, g.take)
	if _, err = s.generated(ctx, g, k, got.message, err); err != nil {
		return depth.Profile{}, err
	}
	if got.Profile == nil || len(got.Profile.Rows) == 0 || len(sampled) == 0 {
		return depth.Profile{}, engine.ErrShallow
	}
	p := depth.Profile{Files: got.Profile.Files, Notes: got.Profile.Notes, Wall: map[string]time.Duration{
		record.Prefill: sampled[0].Sub(k.sent), record.Decode: sampled[len(sampled)-1].Sub(sampled[0])}}
	got.Profile.into(&p)
	return p, nil
}

// into adds what an engine has answered.
func (g *profile) into(p *depth.Profile) {
	layer := func(n *int) int {
		if n == nil {
			return depth.NoLayer
		}
		return *n
	}
	for phase, ns := range g.Wall {
		p.Wall[phase] = time.Duration(ns)
	}
	for _, row := range g.Rows {
		p.Add(depth.Row{Phase: row.Phase, Layer: layer(row.Layer), Role: roleOf(row.Module, row.Kernel),
			Kernel: row.Kernel, Calls: row.Calls, Self: time.Duration(row.NS), Bytes: row.Bytes})
	}
	for _, m := range g.Memory {
		role := depth.Memory
		if m.Module != "" && slices.Contains(depth.Moments, m.At) {
			role = depth.RoleOf(m.Module)
		}
		p.Add(depth.Row{Phase: m.At, Layer: layer(m.Layer), Role: role, Kernel: m.What, Bytes: m.Bytes})
	}
}

// waiting is the kernel of an engine's own overhead.
const waiting = "Python and dispatch"

// roleOf returns the role of a kernel in a module. What runs in no module samples.
func roleOf(module, kernel string) depth.Role {
	if kernel == waiting {
		return depth.Wait
	}
	if role := depth.RoleOf(module); module != "" && role != depth.Other {
		return role
	}
	if role := depth.RoleOf(kernel); role != depth.Other || module != "" {
		return role
	}
	return depth.Sampling
}
