package child

import (
	"os"
	"os/exec"
	"syscall"
)

func own(cmd *exec.Cmd, deathSignal bool) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	if deathSignal {
		cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	}
}

// signalGroup ignores errors: the only one that can come is that nobody is left.
func signalGroup(p *os.Process, s syscall.Signal) { _ = syscall.Kill(-p.Pid, s) }
