// Package container finds a running container of Docker or Podman, its limits, and its processes as this machine
// numbers them.
//
// It asks the two programs' command lines, so it sees what they show to this user. It can't see a container on another
// machine or in a virtual machine, as Docker Desktop's are: their processes are not this kernel's.
package container

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path"
	"strings"
	"time"

	"llmparity/internal/kit/fault"
)

// programs are asked in this order.
var programs = []string{"docker", "podman"}

// Container is a container at the time it was looked at.
type Container struct {
	Program   string // that knows it: docker or podman
	ID, Name  string
	Image     string
	ImageID   string
	Status    string // in the program's word: running, exited …
	PID       int    // its first process; 0 if it does not run
	ExitCode  int
	OOMKilled bool    // the kernel ended a process of it at the memory limit
	Memory    int64   // limit in bytes; 0: none
	CPUs      float64 // limit in cores; 0: none
	Mounts    []Mount

	namespace uint64 // of its process ids
}

// Kind says what the container is made of, whatever its name.
func (c *Container) Kind() string {
	return fmt.Sprintf("%s, image %s (%.12s)", c.Program, c.Image, c.ImageID)
}

// Mount is a folder of this machine in a container.
type Mount struct{ Source, Destination string }

// Find returns the running container with a name or id.
func Find(ctx context.Context, name string) (*Container, error) {
	c, err := look(ctx, name)
	switch {
	case err != nil:
		return nil, err
	case c.PID == 0:
		return nil, fault.New(fault.NothingToWatch, fmt.Sprintf("start it: `%s start %s`", c.Program, name),
			"container %s does not run (%s, exit code %d)", name, c.Status, c.ExitCode)
	}
	if c.namespace, err = pidNamespace(c.PID); err != nil {
		return nil, fault.Wrap(fault.NothingToWatch, err, "run as the user of the container's processes, or as root; a "+
			"container in a virtual machine can't be measured from outside", "process %d of container %s can't be read",
			c.PID, name)
	}
	return c, nil
}

// Wanted is Find for an engine that is to run there. Its error also says how to do without the container.
func Wanted(ctx context.Context, name string) (*Container, error) {
	c, err := Find(ctx, name)
	if err == nil || ctx.Err() != nil {
		return c, err
	}
	do := "drop container_name (--container) to start the engine on this machine"
	if e, ok := errors.AsType[*fault.Error](err); ok && e.Do != "" {
		do = e.Do + ", or " + do
	}
	return nil, fault.New(fault.NoContainer, do, "%s", fault.What(err))
}

// Again looks at the container once more, for example after its end. It is nil if it was removed.
func (c *Container) Again(ctx context.Context) *Container {
	now, err := look(ctx, c.ID)
	if err != nil {
		return nil
	}
	now.namespace = c.namespace
	return now
}

// Has reports whether a process runs in the container: those that `exec` starts have no ancestor there.
func (c *Container) Has(pid int) bool {
	of, err := pidNamespace(pid)
	return err == nil && of == c.namespace
}

// Outside returns the path on this machine of a path in the container. What is on no mount is seen through the
// container's first process, as long as that runs.
func (c *Container) Outside(inside string) string {
	if out := c.mapped(inside, Mount.inside); out != "" || c.PID == 0 {
		return out
	}
	return c.root() + path.Clean("/"+inside)
}

// root is where this machine shows the container's own files.
func (c *Container) root() string { return fmt.Sprintf("/proc/%d/root", c.PID) }

// Inside returns the path in the container of a path on this machine; empty if the container does not have it.
func (c *Container) Inside(outside string) string {
	if in, ok := strings.CutPrefix(outside, c.root()+"/"); ok && c.PID > 0 {
		return path.Clean("/" + in)
	}
	return c.mapped(outside, Mount.outside)
}

func (m Mount) inside() (from, to string)  { return m.Destination, m.Source }
func (m Mount) outside() (from, to string) { return m.Source, m.Destination }

// mapped maps a path by the longest mount that has it.
func (c *Container) mapped(name string, sides func(Mount) (from, to string)) (out string) {
	name, longest := path.Clean(name), -1
	for _, m := range c.Mounts {
		from, to := sides(m)
		from = path.Clean(from)
		rest, below := strings.CutPrefix(name, strings.TrimSuffix(from, "/"))
		if below && (rest == "" || rest[0] == '/') && len(from) > longest {
			out, longest = path.Join(to, rest), len(from)
		}
	}
	return out
}

// patience is how long a program may take to answer.
const patience = 20 * time.Second

// look asks the programs for a container.
func look(ctx context.Context, name string) (*Container, error) {
	if name == "" || strings.HasPrefix(name, "-") {
		return nil, fault.New(fault.Usage, "`docker ps` or `podman ps` lists names", "%q is not a container's name",
			name)
	}
	var asked []string
	var said error
	for _, program := range programs {
		if _, err := exec.LookPath(program); err != nil {
			continue
		}
		asked = append(asked, program)
		out, err := inspect(ctx, program, name)
		if err != nil {
			if !unknown(err) {
				said = err
			}
			continue
		}
		c, err := parse(out)
		if err != nil {
			return nil, fault.Wrap(fault.NothingToWatch, err, "", "%s describes container %s in an unknown way", program,
				name)
		}
		c.Program = program
		return c, nil
	}
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case len(asked) == 0:
		return nil, fault.New(fault.NothingToWatch, "install docker or podman",
			"containers: neither docker nor podman is here")
	case said != nil:
		return nil, fault.Wrap(fault.NothingToWatch, said, "", "container %s was not found", name)
	}
	last := asked[len(asked)-1]
	return nil, fault.New(fault.NothingToWatch, "`"+last+" ps` lists them", "there is no container %s", name)
}

// inspect returns what a program says of a container.
func inspect(ctx context.Context, program, name string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "container", "inspect", name)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &errs, time.Second
	if err := cmd.Run(); err != nil {
		lines := strings.Split(strings.TrimSpace(errs.String()), "\n")
		return nil, fmt.Errorf("%s: %w", program, errors.Join(err, errors.New(lines[len(lines)-1])))
	}
	return out.Bytes(), nil
}

// unknown reports whether a program says that it has no such container, or that its server does not run.
func unknown(err error) bool {
	text := strings.ToLower(err.Error())
	for _, says := range []string{"no such container", "no container with name", "cannot connect to the docker daemon",
		"is the docker daemon running", "failed to connect to the docker api"} {
		if strings.Contains(text, says) {
			return true
		}
	}
	return false
}

// inspected is what both programs print of a container, as far as it is used.
type inspected struct {
	ID        string `json:"Id"`
	Name      string
	Image     string
	ImageName string
	State     struct {
		Status    string
		Running   bool
		OOMKilled bool
		Pid       int
		ExitCode  int
	}
	Config     struct{ Image string }
	HostConfig struct {
		Memory              int64
		NanoCpus            int64
		CpuQuota, CpuPeriod int64 // as the programs spell them
	}
	Mounts []Mount
}

// parse reads the JSON of `container inspect`.
func parse(text []byte) (*Container, error) {
	var all []inspected
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, err
	}
	if len(all) != 1 || all[0].ID == "" {
		return nil, fmt.Errorf("%d containers instead of one with an id", len(all))
	}
	i := all[0]
	c := &Container{ID: i.ID, Name: strings.TrimPrefix(i.Name, "/"), Image: i.Config.Image,
		ImageID: strings.TrimPrefix(i.Image, "sha256:"), Status: i.State.Status,
		ExitCode: i.State.ExitCode, OOMKilled: i.State.OOMKilled, Memory: max(i.HostConfig.Memory, 0), Mounts: i.Mounts}
	if i.ImageName != "" {
		c.Image = i.ImageName
	}
	if i.State.Running {
		c.PID = max(i.State.Pid, 0)
	}
	switch h := i.HostConfig; {
	case h.NanoCpus > 0:
		c.CPUs = float64(h.NanoCpus) / 1e9
	case h.CpuQuota > 0 && h.CpuPeriod > 0:
		c.CPUs = float64(h.CpuQuota) / float64(h.CpuPeriod)
	}
	return c, nil
}
