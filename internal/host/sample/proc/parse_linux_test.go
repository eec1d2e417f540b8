package proc

import (
	"reflect"
	"strings"
	"testing"

	"llmparity/internal/record"
)

// forked is what Linux 6.18 says of a process that was forked and shares anonymous pages with its parent.
const forked = `55a9d2888000-7ffd7f2ef000 ---p 00000000 00:00 0                          [rollup]
Rss:               20832 kB
Pss:               11470 kB
Pss_Dirty:         10016 kB
Pss_Anon:          10016 kB
Pss_File:           1454 kB
Pss_Shmem:             0 kB
Shared_Clean:       3700 kB
Shared_Dirty:      14208 kB
Private_Clean:        12 kB
Private_Dirty:      2912 kB
Referenced:         7036 kB
Anonymous:         17120 kB
KSM:                   0 kB
LazyFree:              0 kB
AnonHugePages:         0 kB
ShmemPmdMapped:        0 kB
FilePmdMapped:         0 kB
Shared_Hugetlb:        0 kB
Private_Hugetlb:       0 kB
Swap:                  0 kB
SwapPss:               0 kB
Locked:                0 kB
`

// without removes the lines that begin with a name.
func without(text, name string) string {
	var kept []string
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, name) {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "")
}

func TestRollup(t *testing.T) {
	const kib = 1 << 10
	whole := record.NewSample()
	whole.RSS, whole.PSS, whole.USS, whole.Swap, whole.Forked = 20832*kib, 11470*kib, 2924*kib, 0, 0
	old, noSwap := whole, whole // of the old one, nothing is known to be shared
	whole.Forked, whole.Kinds = 7104*kib, record.Kinds{Anonymous: 10016 * kib, Files: 1454 * kib}
	noSwap.Forked, noSwap.Kinds, noSwap.Swap = whole.Forked, whole.Kinds, record.Absent
	for name, c := range map[string]struct {
		text string
		want record.Sample
	}{
		"a forked process":      {forked, whole},
		"a kernel before 5.9":   {without(forked, "Pss_"), old},
		"a kernel without swap": {without(forked, "Swap"), noSwap},
	} {
		got := record.NewSample()
		if err := parseRollup([]byte(c.text), &got); err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v %v, want %+v", name, got, err, c.want)
		}
	}
	for _, name := range []string{"Rss:", "Pss:", "Private_Clean:", "Private_Dirty:"} {
		got := record.NewSample()
		if err := parseRollup([]byte(without(forked, name)), &got); err == nil {
			t.Errorf("without %s it is taken for %+v", name, got)
		}
	}
}
