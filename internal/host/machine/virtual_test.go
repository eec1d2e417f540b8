package machine

import (
	"reflect"
	"testing"

	"llmparity/internal/record"
)

func TestContainers(t *testing.T) {
	for _, c := range []struct {
		want       string
		files, env map[string]string
	}{
		{"docker", map[string]string{".dockerenv": ""}, nil},
		{"podman", map[string]string{"run/.containerenv": "engine=\"podman-4.9.3\""}, nil},
		{"kubernetes", map[string]string{".dockerenv": ""}, map[string]string{"KUBERNETES_SERVICE_HOST": "10.0.0.1"}},
		{"kubernetes", map[string]string{"proc/self/cgroup": "0::/kubepods.slice/kubepods-pod1.slice"}, nil},
		{"systemd-nspawn", map[string]string{"run/systemd/container": "systemd-nspawn"}, nil},
		{"apptainer", nil, map[string]string{"APPTAINER_CONTAINER": "/x.sif"}},
		{"podman", map[string]string{"proc/self/cgroup": "0::/machine.slice/libpod-12.scope"}, nil},
		{"lxc", map[string]string{"proc/self/cgroup": "4:memory:/lxc/web"}, nil},
		{"", map[string]string{"proc/self/cgroup": "0::/user.slice/user-1000.slice"}, nil},
	} {
		if got := tree(t, c.files).container(func(name string) string { return c.env[name] }); got != c.want {
			t.Errorf("%v %v: %q, want %q", c.files, c.env, got, c.want)
		}
	}
}

func TestVirtualMachines(t *testing.T) {
	const vendor, product = "sys/class/dmi/id/sys_vendor", "sys/class/dmi/id/product_name"
	guest := "flags : fpu hypervisor"
	for _, c := range []struct {
		want, cpu string
		files     map[string]string
	}{
		{"", "flags : fpu", map[string]string{vendor: "LENOVO", product: "20XW"}},
		{"", "flags : fpu", map[string]string{vendor: "Amazon EC2", product: "c6i.metal"}},
		{"amazon ec2", guest, map[string]string{vendor: "Amazon EC2", product: "c6i.large"}},
		{"google compute engine", guest, map[string]string{vendor: "Google", product: "Google Compute Engine"}},
		{"kvm", guest, map[string]string{vendor: "QEMU", product: "Standard PC (Q35 + ICH9, 2009)"}},
		{"vmware", guest, map[string]string{vendor: "VMware, Inc.", product: "VMware20,1"}},
		{"hyper-v", guest, map[string]string{vendor: "Microsoft Corporation", product: "Virtual Machine"}},
		{"wsl", guest, map[string]string{"proc/sys/kernel/osrelease": "5.15.167.4-microsoft-standard-WSL2"}},
		{"xen", "", map[string]string{"sys/hypervisor/type": "xen"}},
		{"kvm", "", map[string]string{"proc/device-tree/hypervisor/compatible": "linux,kvm"}},
		{"apple virtualization", "", map[string]string{vendor: "Apple Inc.",
			product: "Apple Virtualization Generic Platform"}},
		{"unknown hypervisor", guest, nil},
	} {
		if got := tree(t, c.files).virtual(parseCPUInfo(c.cpu)); got != c.want {
			t.Errorf("%v: %q, want %q", c.files, got, c.want)
		}
	}
}

func TestTemperatures(t *testing.T) {
	got := tree(t, map[string]string{
		"sys/class/hwmon/hwmon0/name": "coretemp", "sys/class/hwmon/hwmon0/temp1_input": "54000",
		"sys/class/hwmon/hwmon0/temp2_input": "61500",
		"sys/class/hwmon/hwmon1/name":        "nvme", "sys/class/hwmon/hwmon1/temp1_input": "70000",
		"sys/class/hwmon/hwmon2/name": "acpitz", "sys/class/hwmon/hwmon2/temp1_input": "-274000",
		"sys/class/thermal/thermal_zone0/type": "x86_pkg_temp", "sys/class/thermal/thermal_zone0/temp": "62000",
		"sys/class/thermal/thermal_zone1/type": "broken", "sys/class/thermal/thermal_zone1/temp": "hot",
	}).temperatures()
	if want := []record.Temperature{{Chip: "coretemp", Celsius: 61.5},
		{Chip: "x86_pkg_temp", Celsius: 62}}; !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
}
