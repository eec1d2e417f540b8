package machine

import (
	"cmp"
	"maps"
	"slices"

	"llmparity/internal/record"
)

// temperatures returns the hottest sensor of each chip. It leaves out disks and networks, which are slow and would wake
// up.
func (f files) temperatures() []record.Temperature {
	hottest := map[string]float64{}
	take := func(chip string, milli int64) {
		if celsius := float64(milli) / 1000; celsius > -60 && celsius < 200 && celsius != 0 { // else no real sensor
			if old, ok := hottest[chip]; !ok || celsius > old {
				hottest[chip] = celsius
			}
		}
	}
	for _, chip := range f.all("sys/class/hwmon/hwmon[0-9]*") {
		name := f.text(chip, "name")
		if slices.Contains([]string{"", "nvme", "drivetemp", "iwlwifi_1", "jc42", "spd5118"}, name) {
			continue
		}
		for _, sensor := range f.all(chip + "/temp[0-9]*_input") {
			if milli, ok := f.number(sensor); ok {
				take(name, milli)
			}
		}
	}
	for _, zone := range f.all("sys/class/thermal/thermal_zone[0-9]*") {
		if milli, ok := f.number(zone, "temp"); ok {
			take(cmp.Or(f.text(zone, "type"), "thermal zone"), milli)
		}
	}
	var out []record.Temperature
	for _, chip := range slices.Sorted(maps.Keys(hottest)) {
		out = append(out, record.Temperature{Chip: chip, Celsius: hottest[chip]})
	}
	return out
}
