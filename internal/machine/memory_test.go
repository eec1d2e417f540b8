package machine

import (
	"reflect"
	"testing"

	"llmparity/internal/record"
)

func TestMemory(t *testing.T) {
	m := map[string]string{"proc/meminfo": "MemTotal:       24684084 kB\nMemFree:        16638244 kB\nMemAvailable:   23721844 kB\nCached:          100 kB\n" +
		"SwapTotal:       2097148 kB\nSwapFree:        1048576 kB\nHugePages_Total:       7",
		"sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never"}
	total, got := tree(m).memory()
	want := &record.Memory{AvailableB: 23721844 << 10, SwapB: 2097148 << 10, SwapFreeB: 1 << 30, HugePages: "madvise"}
	if total != 24684084<<10 || !reflect.DeepEqual(got, want) {
		t.Errorf("%d %+v", total, got)
	}
	m["proc/meminfo"] = "MemTotal: 8000 kB\nMemFree: 3000 kB\nCached: 1000 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB"
	m["sys/kernel/mm/transparent_hugepage/enabled"] = "always madvise never"
	if total, got = tree(m).memory(); total != 8000<<10 ||
		!reflect.DeepEqual(got, &record.Memory{AvailableB: 4000 << 10}) {
		t.Errorf("of an old kernel: %d %+v", total, got)
	}
	if total, got = tree(nil).memory(); total != 0 || got != nil {
		t.Errorf("of none: %d %+v", total, got)
	}
}

func TestChosen(t *testing.T) {
	for text, want := range map[string]string{"[always] madvise never": "always",
		"always defer defer+madvise [madvise] never": "madvise", "always": "",
		"": "", "]x[": "", "[x": "", "a [ b ] c": "b"} {
		if got := chosen(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func FuzzMemInfo(f *testing.F) {
	f.Add("MemTotal:       24684084 kB\nHugePages_Total:       7\nSwapFree: 0 kB\n")
	f.Add("MemTotal: 99999999999999999999 kB\nx: -1 kB\n: 3 kB")
	f.Fuzz(func(t *testing.T, text string) {
		for key, b := range parseMemInfo(text) {
			if b < 0 || b%1024 != 0 {
				t.Errorf("%q: %d bytes", key, b)
			}
		}
	})
}

func FuzzTheWordInBrackets(f *testing.F) {
	f.Add("always [madvise] never")
	f.Add("[[]]")
	f.Fuzz(func(t *testing.T, text string) {
		if len(chosen(text)) > len(text) {
			t.Errorf("%q", text)
		}
	})
}
