package machine

import (
	"strconv"

	"llmparity/internal/record"
)

const (
	damon        = "sys/kernel/mm/damon/admin/kdamonds"
	damonReclaim = "sys/module/damon_reclaim/parameters"
)

// reclaimers returns what in the kernel evicts idle memory of processes even without memory pressure: DAMON schemes
// that page out, and the module damon_reclaim. It can't see what programs do by memory.reclaim or process_madvise.
func (f files) reclaimers() []record.Reclaimer {
	var out []record.Reclaimer
	for _, kdamond := range f.all(damon + "/[0-9]*") {
		switch f.text(kdamond, "state") {
		case "on":
			for _, context := range f.all(kdamond + "/contexts/[0-9]*") {
				out = append(out, f.schemes(context)...)
			}
		case "":
			if f.exists(kdamond + "/state") {
				out = append(out, record.Reclaimer{By: record.DAMON, Hidden: true})
			}
		}
	}
	if f.text(damonReclaim, "enabled") == "Y" {
		r := record.Reclaimer{By: record.DAMONReclaim, IdleS: f.micro(damonReclaim, "min_age"),
			FreeBelow: f.perMille(damonReclaim, "wmarks_mid")}
		out = append(out, r)
	}
	return out
}

// schemes returns the schemes of a context that page out.
func (f files) schemes(context string) []record.Reclaimer {
	var out []record.Reclaimer
	for _, scheme := range f.all(context + "/schemes/[0-9]*") {
		if f.text(scheme, "action") != "pageout" {
			continue
		}
		ages, _ := f.number(scheme, "access_pattern/age/min") // 0: at once
		r := record.Reclaimer{By: record.DAMON, Some: f.text(context, "operations") != "paddr",
			IdleS: float64(max(ages, 0)) * f.micro(context, "monitoring_attrs/intervals/aggr_us")}
		if f.text(scheme, "watermarks/metric") == "free_mem_rate" {
			r.FreeBelow = f.perMille(scheme, "watermarks/mid")
		}
		out = append(out, r)
	}
	return out
}

// micro returns a file's microseconds in seconds; 0 without a number.
func (f files) micro(name ...string) float64 { return f.positive(name...) / 1e6 }

// perMille returns a file's thousandths as a share; 0 without a number.
func (f files) perMille(name ...string) float64 { return min(f.positive(name...), 1000) / 1000 }

func (f files) positive(name ...string) float64 {
	n, err := strconv.ParseUint(f.text(name...), 10, 53)
	if err != nil {
		return 0
	}
	return float64(n)
}
