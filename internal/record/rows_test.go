package record

import (
	"strings"
	"testing"

	"llmparity/internal/check"
	"llmparity/internal/lines"
)

// Columns may be in any order, and later versions may have more of them.
func TestSamplesAreReadByColumnName(t *testing.T) {
	const header = "new,edge,hwm_mb,swap_mb,uss_mb,pss_mb,attempt,source,read_ns,t_ns,vms_mb,rss_mb\n"
	for text, want := range map[string]string{
		header + "7,idle,1e2,,,-0,1,2,-5,+6,0x1p2,3\n":                    "",
		header + "7,idle,1e2,,,-0,1,2,-5,+6,0x1p2,\n8,,,,,,1,1,1,1,,-1\n": "line 3: column rss_mb: \"-1\" is not a size in MiB",
		header + "7,idle,1e2,,,-0,1,,-5,+6,0x1p2,3\n":                     "line 2: column source: \"\" is not a whole number",
		header + "7,idle\n":      "line 2: 2 fields, but the header has 12",
		"attempt,attempt\n1,1\n": "line 1: duplicate column \"attempt\"",
		strings.Replace(header, "pss_mb", "p", 1) + "7,,,,,,1,2,-5,+6,,\n":               "line 2: missing column \"pss_mb\"",
		header + "7,,,,,,9,2,-5,6,,3\n7,,,,,,1,9,-5,6,,3\n7,idle,100,,,0,1,2,-5,6,4,3\n": "", // unknown attempt and source
	} {
		path, a := t.TempDir()+"/samples.csv", &Attempt{Sources: map[int]Source{2: {}, 1: {}}}
		put(t, path, []byte(text))
		b := &builder{attempts: map[int]*Attempt{1: a}}
		_, err := lines.EachRow(path, b.sample)
		if want != "" {
			if err == nil || !strings.HasSuffix(err.Error(), want) {
				t.Errorf("%s: %v, want %s", text, err, want)
			}
			continue
		}
		check.Err(t, err)
		if len(a.Samples) != 1 {
			t.Fatalf("%s: %d samples", text, len(a.Samples))
		}
		if s := a.Samples[0]; s.Source != 2 || s.ReadNS != -5 || s.NS != 6 || s.VMS != 4 || s.RSS != 3 || s.PSS != 0 ||
			s.HWM != 100 || s.USS == s.USS || s.Edge != Idle {
			t.Errorf("%s: %+v", text, s)
		}
	}
}
