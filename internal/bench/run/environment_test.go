package run

import (
	"strings"
	"testing"

	"llmparity/internal/record"
)

func TestUnfitMachineWarns(t *testing.T) {
	minute := record.Reclaimer{By: record.DAMON, IdleS: 60}
	with := func(r ...record.Reclaimer) record.Environment {
		return record.Environment{Cores: 4, Load1: 2, Memory: &record.Memory{Reclaimers: r}}
	}
	for _, c := range []struct {
		name string
		env  record.Environment
		want []string // codes, each with a piece of its text
	}{
		{"nothing", with(), nil},
		{"unknown", record.Environment{Cores: 4}, nil},
		{"busy", record.Environment{Cores: 4, Load1: 2.1}, []string{"noisy-machine", "2.1 on 4 cores"}},
		{"two reclaimers", with(minute, record.Reclaimer{By: record.DAMONReclaim, IdleS: 120}),
			[]string{"memory-reclaimed", "the kernel reclaims idle memory after 60 s (DAMON)"}},
		{"hidden", with(record.Reclaimer{By: record.DAMON, Hidden: true}),
			[]string{"memory-reclaimed", "the kernel may reclaim idle memory (DAMON)"}},
		{"other processes", with(record.Reclaimer{By: record.DAMON, Some: true, IdleS: 60}), nil},
	} {
		got := unfit(c.env)
		if len(got) != len(c.want)/2 || len(got) > 0 &&
			(got[0].Code != c.want[0] || !strings.Contains(got[0].Text, c.want[1])) {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}
