package container

import "testing"

// Groups of both versions are found, the memory controller's before the one that all processes have.
func TestGroupOf(t *testing.T) {
	for text, want := range map[string]memoryGroup{
		"0::/machine.slice/libpod-1.scope\n":                          {"/cg/machine.slice/libpod-1.scope", version2},
		"7:memory:/libpod_parent/libpod-1\n3:cpu,cpuacct:/x\n0::/y\n": {"/cg/memory/libpod_parent/libpod-1", version1},
		"0::/y\n4:cpu,memory:/a:b\n":                                  {"/cg/memory/a:b", version1},
	} {
		if got, ok := groupOf(text, "/cg"); !ok || got != want {
			t.Errorf("%q: %+v, %v", text, got, ok)
		}
	}
	if got, ok := groupOf("3:cpu:/x\nrubbish\n", "/cg"); ok {
		t.Errorf("without such a group: %+v", got)
	}
}
