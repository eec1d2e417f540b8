package proc

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"llmparity/internal/record"
)

// recorded are the mappings of a GPU process of Chromium 156 with SwiftShader and a model in it.
func recorded(t testing.TB) []byte {
	t.Helper()
	f, err := os.Open("testdata/gpu-process.smaps.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestMappingsOfABrowser(t *testing.T) {
	got, err := kindsOf(recorded(t))
	if want := (Kinds{47900 << 10, 564 << 10, 2154 << 10, 31657 << 10}); err != nil || got != want {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
}

func TestKindsOfMappings(t *testing.T) {
	for line, want := range map[string]Kind{
		"7f00-7f01 rw-p 00000000 00:00 0": Anonymous, "7f00-7f01 r-xp 00000000 00:00 0": Code,
		"7f00-7f01 rwxp 00000000 00:00 0 ":                     Code,
		"7f00-7f01 rw-p 00000000 00:00 0    [heap]":            Anonymous,
		"7f00-7f01 rw-p 00000000 00:00 0    [anon:v8]":         Anonymous,
		"7f00-7f01 r-xp 00000000 00:00 0    [vdso]":            Files,
		"7f00-7f01 rw-s 00 00:01 12   /memfd:region (deleted)": Shared,
		"7f00-7f01 r-xs 00 00:01 12   /memfd:jit (deleted)":    Code,
		"7f00-7f01 rw-s 00 00:01 12   /dev/shm/.org.chromium":  Shared,
		"7f00-7f01 rw-s 00 00:01 12   /SYSV00000000 (deleted)": Shared,
		"7f00-7f01 r-xp 00 fe:00 12   /usr/bin/a name":         Files,
		"7f00-7f01 rw-p 00 fe:00 12   /tmp/Pss: 12 kB":         Files,
	} {
		got, err := kindsOf([]byte(line + "\nSize:   4 kB\nPss:             3 kB\nPss_Dirty:   2 kB\nVmFlags: rd\n"))
		if err != nil || got[want] != 3<<10 || got.Sum() != 3<<10 {
			t.Errorf("%s: %v, %v", line, got, err)
		}
	}
	for _, text := range []string{"Pss: 3 kB\n", "7f00-7f01 rw-p 0 0 0\nPss: x kB\n", "7f00-7f01 rw-p 0 0 0\nPss: 3 mB\n", "7f00-7f01 rw\n", "\n",
		"7f00-7f01 rw-p 0 0 0\nPss: 99999999999999999999 kB\n"} {
		if got, err := kindsOf([]byte(text)); err == nil {
			t.Errorf("%q is taken for %v", text, got)
		}
	}
}

func FuzzMappings(f *testing.F) {
	f.Add([]byte("7f00-7f01 rw-p 00000000 00:00 0 \nPss:  3 kB\n7f01-7f02 rw-s 0 0 1  /memfd:a\nPss: 4 kB\n"))
	f.Add(recorded(f)[:4096])
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := kindsOf(text)
		for _, n := range got {
			if n < 0 {
				t.Fatalf("%v", got)
			}
		}
		if err != nil {
			return
		}
		twice, err := kindsOf(bytes.Join([][]byte{text, text}, []byte("\n")))
		if bytes.HasSuffix(text, []byte("\n")) || len(text) == 0 {
			twice, err = kindsOf(append(bytes.Clone(text), text...))
		}
		if err != nil || twice.Sum() != 2*got.Sum() {
			t.Fatalf("%v, and twice %v, %v", got, twice, err)
		}
	})
}

// A peak that is over before mappings are read again is found all the same, and told as it was.
func TestTheHighestMomentIsFound(t *testing.T) {
	m, err := MappingsOf(os.Getpid(), "test")
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	var told []record.Sample
	m.Pushes(func(s record.Sample) { told = append(told, s) })
	before := record.NewSample()
	if err := m.Read(t.Context(), &before); err != nil {
		t.Fatal(err)
	}
	const anonymous, shared = 96 << 20, 48 << 20
	var h Highest
	all := []*Mappings{m}
	h.Follow(all)
	one, two := touched(t, anonymous, unix.MAP_PRIVATE), touched(t, shared, unix.MAP_SHARED)
	h.Follow(all)
	for _, b := range [][]byte{one, two} {
		if err := unix.Munmap(b); err != nil {
			t.Fatal(err)
		}
	}
	h.Follow(all)
	h.Tell()
	if len(told) != 1 || len(told[0].Values) != int(kinds) || told[0].End.IsZero() {
		t.Fatalf("%+v", told)
	}
	for kind, want := range map[Kind]float64{Anonymous: anonymous, Shared: shared} {
		grown := told[0].Values[kind].Value - before.Values[kind].Value
		if told[0].Values[kind].Name != kind.Metric() || grown < 0.95*want || grown > want+(16<<20) {
			t.Errorf("%s grew by %.1f MiB, %.1f were taken", kind.Metric(), grown/record.MiB, want/record.MiB)
		}
	}
}

func touched(t *testing.T, size, how int) []byte {
	t.Helper()
	b, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, how|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < size; i += 4096 {
		b[i] = 1
	}
	return b
}

// What one process sees of shared memory that another saw before is no growth.
func TestSharedMemoryIsCarriedOnce(t *testing.T) {
	file := func(anonymous, shared int) *os.File {
		f, err := os.CreateTemp(t.TempDir(), "status")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		status(t, f, anonymous, shared)
		return f
	}
	page := &Mappings{status: file(10, 1000), last: holding{kinds: Kinds{10 << 10, 0, 1000 << 10, 0}, anonymous: 10 << 10, shared: 1000 << 10}}
	gpu := &Mappings{status: file(20, 0), last: holding{kinds: Kinds{20 << 10}, anonymous: 20 << 10}}
	for _, c := range []struct{ page, gpu, more int }{{1000, 0, 0}, {1000, 1000, 0}, {1500, 1000, 500}, {0, 400, -600}} {
		status(t, page.status, 10, c.page)
		status(t, gpu.status, 27, c.gpu)
		held, total, _ := carried([]*Mappings{page, gpu})
		shared := held[page][Shared] + held[gpu][Shared]
		if want := int64(1000+c.more) << 10; shared != want || total != want+37<<10 {
			t.Errorf("%+v: shared %d, in all %d", c, shared>>10, total>>10)
		}
	}
}

func status(t *testing.T, f *os.File, anonymous, shared int) {
	t.Helper()
	text := []byte("Name:\tx\nRssAnon:\t" + pad(anonymous) + " kB\nRssFile:\t" + pad(7) + " kB\nRssShmem:\t" + pad(shared) + " kB\n")
	if _, err := f.WriteAt(text, 0); err != nil {
		t.Fatal(err)
	}
}

func pad(n int) string { return fmt.Sprintf("%8d", n) }
