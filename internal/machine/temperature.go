package machine

import (
	"cmp"
	"maps"
	"slices"

	"llmparity/internal/record"
)

// sensors is how many are read at most: a big server has hundreds.
const sensors = 256

// temperatures are the hottest of each chip. Disks and networks are left out: asking them takes long, and wakes them.
func (f files) temperatures() []record.Temperature {
	hottest := map[string]float64{}
	take := func(chip string, milli int64) {
		if celsius := float64(milli) / 1000; celsius > -60 && celsius < 200 && celsius != 0 { // others are of no sensor
			if old, ok := hottest[chip]; !ok || celsius > old {
				hottest[chip] = celsius
			}
		}
	}
	read := 0
	for _, chip := range f.all("sys/class/hwmon/hwmon[0-9]*") {
		name := f.text(chip, "name")
		if slices.Contains([]string{"", "nvme", "drivetemp", "iwlwifi_1", "jc42", "spd5118"}, name) {
			continue
		}
		for _, sensor := range f.all(chip + "/temp[0-9]*_input") {
			if read++; read > sensors {
				break
			}
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
