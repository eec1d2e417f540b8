package container

import (
	"encoding/json"
	"reflect"
	"testing"

	"llmparity/internal/kit/check"
)

// What podman 4.3 and docker 28 print, without the fields that are not read.
const (
	ofPodman = `[{"Id": "45fb", "Name": "lp1", "ImageName": "localhost/test:latest", "Image": "7bee",
		"State": {"Status": "running", "Running": true, "OOMKilled": false, "Pid": 4420, "ConmonPid": 4409,
			"ExitCode": 0}, "Config": {"Image": "localhost/test:latest"},
		"Mounts": [{"Type": "bind", "Source": "/srv/models", "Destination": "/models"}],
		"HostConfig": {"Memory": 268435456,
		"NanoCpus": 0, "CpuPeriod": 100000, "CpuQuota": 150000}}]`
	ofDocker = `[{"Id": "8d1e", "Name": "/vllm-inference", "Image": "sha256:5f",
		"State": {"Status": "exited", "Running": false, "OOMKilled": true, "Pid": 0, "ExitCode": 137},
		"Config": {"Image": "vllm/vllm-openai:v0.11.0"}, "Mounts": [],
		"HostConfig": {"Memory": 0, "NanoCpus": 2500000000, "CpuPeriod": 0, "CpuQuota": 0}}]`
)

func TestParse(t *testing.T) {
	for text, want := range map[string]Container{
		ofPodman: {ID: "45fb", Name: "lp1", Image: "localhost/test:latest", ImageID: "7bee", Status: "running",
			PID: 4420, Memory: 256 << 20, CPUs: 1.5, Mounts: []Mount{{"/srv/models", "/models"}}},
		ofDocker: {ID: "8d1e", Name: "vllm-inference", Image: "vllm/vllm-openai:v0.11.0", ImageID: "5f",
			Status: "exited", ExitCode: 137, OOMKilled: true, CPUs: 2.5, Mounts: []Mount{}},
	} {
		got, err := parse([]byte(text))
		check.Err(t, err)
		if !reflect.DeepEqual(*got, want) {
			t.Errorf("%+v,\nwant %+v", *got, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(ofPodman))
	f.Add([]byte(ofDocker))
	f.Fuzz(func(t *testing.T, text []byte) {
		if c, err := parse(text); err == nil && (!json.Valid(text) || c.ID == "" || c.Memory < 0 || c.PID < 0) {
			t.Errorf("%+v", c)
		}
	})
}

func TestPaths(t *testing.T) {
	c := &Container{Mounts: []Mount{{"/srv", "/data"}, {"/home/me/models", "/data/models"}, {"/", "/host"}}}
	for _, x := range []struct{ inside, outside string }{{"/data/a.gguf", "/srv/a.gguf"},
		{"/data/models/b/c.gguf", "/home/me/models/b/c.gguf"}, {"/data", "/srv"}, {"/host/etc/passwd", "/etc/passwd"}} {
		if got := c.Outside(x.inside); got != x.outside {
			t.Errorf("%s is %q outside, want %s", x.inside, got, x.outside)
		}
		if got := c.Inside(x.outside); got != x.inside {
			t.Errorf("%s is %q inside, want %s", x.outside, got, x.inside)
		}
	}
	c.Mounts = c.Mounts[:2]
	if got := c.Outside("/database/a.gguf"); got != "" {
		t.Errorf("a folder whose name begins alike: %q", got)
	}
	c.PID = 7
	const own = "/database/a.gguf"
	if got := c.Outside(own); got != "/proc/7/root"+own || c.Inside(got) != own {
		t.Errorf("the container's own file is %q outside, and %q inside", got, c.Inside(got))
	}
	if got := c.Inside("/proc/77/root/a.gguf"); got != "" {
		t.Errorf("another process's file is %q", got)
	}
}
