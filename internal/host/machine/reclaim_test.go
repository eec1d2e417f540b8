package machine

import (
	"maps"
	"reflect"
	"testing"

	"llmparity/internal/record"
)

// pagingOut is a machine whose DAMON pages out memory after a minute without use.
func pagingOut() map[string]string {
	const of = damon + "/0/contexts/0"
	return map[string]string{damon + "/nr_kdamonds": "1", damon + "/0/state": "on", damon + "/0/pid": "77",
		of + "/operations":                         "paddr",
		of + "/monitoring_attrs/intervals/aggr_us": "5000000", of + "/schemes/nr_schemes": "1",
		of + "/schemes/0/action":                 "pageout",
		of + "/schemes/0/access_pattern/age/min": "12", of + "/schemes/0/access_pattern/age/max": "4294967295",
		of + "/schemes/0/watermarks/metric": "none", of + "/schemes/0/watermarks/mid": "0"}
}

func TestReclaimers(t *testing.T) {
	const of = damon + "/0/contexts/0"
	minute := record.Reclaimer{By: record.DAMON, IdleS: 60}
	for _, c := range []struct {
		name    string
		changed map[string]string
		want    []record.Reclaimer
	}{
		{"all memory", nil, []record.Reclaimer{minute}},
		{"off", map[string]string{damon + "/0/state": "off"}, nil},
		{"to be read by root alone", map[string]string{damon + "/0/state": ""},
			[]record.Reclaimer{{By: record.DAMON, Hidden: true}}},
		{"watched and left alone", map[string]string{of + "/schemes/0/action": "stat"}, nil},
		{"of processes that were named", map[string]string{of + "/operations": "vaddr"},
			[]record.Reclaimer{{By: record.DAMON, Some: true, IdleS: 60}}},
		{"when memory gets scarce", map[string]string{of + "/schemes/0/watermarks/metric": "free_mem_rate",
			of + "/schemes/0/watermarks/mid": "400"},
			[]record.Reclaimer{{By: record.DAMON, IdleS: 60, FreeBelow: 0.4}}},
		{"two schemes and the module", map[string]string{of + "/schemes/1/action": "pageout",
			of + "/schemes/1/access_pattern/age/min": "1",
			damonReclaim + "/enabled":                "Y", damonReclaim + "/min_age": "120000000",
			damonReclaim + "/wmarks_mid": "400"},
			[]record.Reclaimer{minute, {By: record.DAMON, IdleS: 5},
				{By: record.DAMONReclaim, IdleS: 120, FreeBelow: 0.4}}},
		{"the module is there and off", map[string]string{damon + "/0/state": "off", damonReclaim + "/enabled": "N",
			damonReclaim + "/min_age": "120000000"}, nil},
		{"nonsense", map[string]string{of + "/schemes/0/access_pattern/age/min": "-3",
			of + "/monitoring_attrs/intervals/aggr_us": "x",
			damonReclaim + "/enabled":                  "Y", damonReclaim + "/min_age": "-1",
			damonReclaim + "/wmarks_mid": "99999"},
			[]record.Reclaimer{{By: record.DAMON}, {By: record.DAMONReclaim, FreeBelow: 1}}},
	} {
		m := pagingOut()
		maps.Copy(m, c.changed)
		if got := tree(t, m).reclaimers(); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
	if got := tree(t, nil).reclaimers(); got != nil {
		t.Errorf("a kernel without: %+v", got)
	}
}
