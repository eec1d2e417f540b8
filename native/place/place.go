// Package place is where an engine's programs run: on this machine, or in a container that a user runs.
//
// A program in a container is started by the container's own command line, and everything else stays outside: its
// processes are sampled by this machine's numbers, its server is reached through the container's network, and what is
// measured is written here. A nil *Place is this machine.
package place

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"sync"

	"llmparity/internal/engine"
	"llmparity/internal/host/cache"
	"llmparity/internal/host/child"
	"llmparity/internal/host/container"
	"llmparity/internal/kit/fault"
	"llmparity/internal/kit/words"
	"llmparity/native/wire"
)

// Place is a container that programs are started in.
type Place struct {
	name string // or id, as the user gave it

	mu    sync.Mutex
	found *container.Container
	which map[string]string // programs by names; of the container as found
}

// In returns the container with a name; nil for no name: this machine.
func In(name string) *Place {
	if name == "" {
		return nil
	}
	return &Place{name: name}
}

// String returns the container's name.
func (p *Place) String() string { return p.name }

// Container returns the container. It is looked for again if it was started anew meanwhile.
func (p *Place) Container(ctx context.Context) (*container.Container, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.found != nil && p.found.Has(p.found.PID) {
		return p.found, nil
	}
	c, err := container.Wanted(ctx, p.name)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, engine.SetUp(err)
	}
	p.found, p.which = c, map[string]string{}
	return c, nil
}

// Says runs a program in the container that prints something and ends, and returns the output.
func (p *Place) Says(ctx context.Context, argv ...string) (string, error) {
	c, err := p.Container(ctx)
	if err != nil {
		return "", err
	}
	cmd := c.Pass(argv, child.Variable)
	return child.Says(ctx, cmd.Args[0], cmd.Args[1:]...)
}

// Which finds a program in the container by the first of the names, or paths, that is there; empty: none is.
func (p *Place) Which(ctx context.Context, names ...string) (string, error) {
	key := strings.Join(names, "\x00")
	if _, err := p.Container(ctx); err != nil {
		return "", err
	}
	p.mu.Lock()
	known, ok := p.which[key]
	p.mu.Unlock()
	if ok {
		return known, nil
	}
	const look = `for name; do command -v "$name" && exit; done; echo`
	said, err := p.Says(ctx, append([]string{"sh", "-c", look, "sh"}, names...)...)
	if err != nil {
		return "", engine.SetUp(fault.Wrap(fault.NoContainer, err, "engines are started by a shell in the container",
			"container %s", p.name))
	}
	found := child.LastLine(said)
	if !strings.HasPrefix(found, "/") { // a shell's own command
		found = ""
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.which[key] = found
	return found, nil
}

// Path returns the path, where programs run, of a file or folder of this machine.
func (p *Place) Path(ctx context.Context, outside string) (string, error) {
	if p == nil || outside == "" {
		return outside, nil
	}
	c, err := p.Container(ctx)
	if err != nil {
		return "", err
	}
	if inside := c.Inside(outside); inside != "" {
		return inside, nil
	}
	dir := outside
	if info, err := os.Stat(outside); err != nil || !info.IsDir() {
		dir = path.Dir(outside)
	}
	return "", engine.SetUp(fault.New(fault.NoContainer, fmt.Sprintf("start the container with -v %s:%[1]s:ro", dir),
		"%s is not in container %s", outside, c.Name))
}

// Outside returns the path on this machine of a file where programs run; empty: it has none.
func (p *Place) Outside(inside string) string {
	if p == nil {
		return inside
	}
	c, err := p.Container(context.Background())
	if err != nil {
		return ""
	}
	return c.Outside(inside)
}

// Open opens a file or folder where programs run.
func (p *Place) Open(name string) (*os.File, error) {
	if p == nil {
		return os.Open(name)
	}
	c, err := p.Container(context.Background())
	if err != nil {
		return nil, err
	}
	return c.Open(name)
}

// Stat describes a file where programs run.
func (p *Place) Stat(name string) (os.FileInfo, error) {
	f, err := p.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Stat()
}

// Hash returns the SHA-256 of a file where programs run.
func (p *Place) Hash(name string) (string, error) {
	f, err := p.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	return cache.Hash(f, name)
}

// Names lists a folder where programs run; none if it can't be read.
func (p *Place) Names(dir string) []string {
	f, err := p.Open(dir)
	if err != nil {
		return nil
	}
	defer f.Close()
	names, _ := f.Readdirnames(-1)
	slices.Sort(names)
	return names
}

// Environ has the variables that programs inherit. In a container they are its own, and the result is empty.
func (p *Place) Environ() []string {
	if p == nil {
		return os.Environ()
	}
	return []string{}
}

// Enter returns the command that runs another one in the container, with its variables. hold, if any, is open while
// the command may run; one that reads its standard input ends with that.
func (p *Place) Enter(ctx context.Context, cmd *exec.Cmd) (c *container.Container, into *exec.Cmd, hold io.Closer,
	err error) {
	if c, err = p.Container(ctx); err != nil {
		return nil, nil, nil, err
	}
	variables := []string{child.Variable}
	for _, v := range cmd.Env {
		name, _, _ := strings.Cut(v, "=")
		variables = append(variables, name)
	}
	argv := append([]string{cmd.Path}, cmd.Args[1:]...)
	if cmd.Stdin != nil {
		into = c.Pass(argv, variables...)
		into.Stdin = cmd.Stdin
	} else {
		into = c.Exec(argv, variables...)
		if hold, err = into.StdinPipe(); err != nil {
			return nil, nil, nil, err
		}
	}
	into.Env, into.Stdout = append(os.Environ(), cmd.Env...), cmd.Stdout
	return c, into, hold, nil
}

// Dial connects to an address where programs run.
func (p *Place) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	if p == nil {
		return (&net.Dialer{Timeout: wire.Patience}).DialContext(ctx, network, address)
	}
	c, err := p.Container(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, wire.Patience)
	defer cancel()
	return c.Dial(ctx, network, address)
}

// Client returns a client of servers that listen on the loopback interface where programs run.
func (p *Place) Client() *http.Client {
	if p == nil {
		return wire.NewClient(true)
	}
	return wire.ClientBy(p.Dial)
}

// Room returns how much memory a new program may use, if that is less than this machine has.
func (p *Place) Room(ctx context.Context) (free int64, how string, ok bool) {
	if p == nil {
		return 0, "", false
	}
	c, err := p.Container(ctx)
	if err != nil {
		return 0, "", false
	}
	free, ok = c.Left()
	return free, fmt.Sprintf("memory limit of container %s, %s, minus its use", c.Name, words.Size(c.Memory)), ok
}

// Describe adds the container and its limits to what a record says of settings.
func (p *Place) Describe(policy map[string]string) {
	if p == nil {
		return
	}
	c, err := p.Container(context.Background())
	if err != nil {
		return // it has ended, and so has the launch
	}
	policy["container"] = c.Kind()
	policy["container_memory"], policy["container_cores"] = "no limit", "no limit"
	if c.Memory > 0 {
		policy["container_memory"] = words.Size(c.Memory)
	}
	if c.CPUs > 0 {
		policy["container_cores"] = fmt.Sprintf("%g", c.CPUs)
	}
}
