package machine

import (
	"os"
	"strings"
)

// Container returns the kind of container that this program runs in; empty if there is none.
func Container() string { return at("/").container(os.Getenv) }

// container returns the kind of container; empty if there is none.
func (f files) container(getenv func(string) string) string {
	group := f.text("proc/self/cgroup")
	switch {
	case getenv("KUBERNETES_SERVICE_HOST") != "" || strings.Contains(group, "kubepods"):
		return "kubernetes"
	case f.exists("run/.containerenv"):
		return "podman"
	case f.exists(".dockerenv"):
		return "docker"
	case f.text("run/systemd/container") != "":
		return f.text("run/systemd/container")
	case getenv("APPTAINER_CONTAINER") != "" || getenv("SINGULARITY_CONTAINER") != "":
		return "apptainer"
	}
	for _, kind := range []string{"libpod", "docker", "lxc", "containerd"} {
		if strings.Contains(group, "/"+kind) {
			return strings.Replace(kind, "libpod", "podman", 1)
		}
	}
	return ""
}

// virtual returns the hypervisor; empty if there is none.
func (f files) virtual(info cpuInfo) string {
	maker := strings.ToLower(f.text("sys/class/dmi/id/sys_vendor") + " " + f.text("sys/class/dmi/id/product_name"))
	tree := f.text("proc/device-tree/hypervisor/compatible")
	release := strings.ToLower(f.text("proc/sys/kernel/osrelease"))
	switch {
	case strings.Contains(release, "microsoft"):
		return "wsl"
	case f.text("sys/hypervisor/type") != "":
		return f.text("sys/hypervisor/type")
	case strings.Contains(tree, "kvm"):
		return "kvm"
	case !info.flags["hypervisor"] && !strings.Contains(maker, "virtual") && !strings.Contains(maker, "qemu"):
		return "" // cloud machines may be bare metal
	}
	for _, m := range [][2]string{{"qemu", "kvm"}, {"kvm", "kvm"}, {"amazon ec2", "amazon ec2"},
		{"google", "google compute engine"},
		{"microsoft", "hyper-v"}, {"vmware", "vmware"}, {"virtualbox", "virtualbox"}, {"innotek", "virtualbox"},
		{"parallels", "parallels"},
		{"xen", "xen"}, {"apple virtualization", "apple virtualization"}} {
		if strings.Contains(maker, m[0]) {
			return m[1]
		}
	}
	return "unknown hypervisor"
}
