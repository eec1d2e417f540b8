package browser

import (
	"testing"

	"llmparity/internal/engine"
	"llmparity/internal/kit/check"
	"llmparity/internal/kit/fault"
	"llmparity/internal/record"
)

// What exceeds the page's quota fails with a class of its own, wherever it was to be stored.
func TestQuota(t *testing.T) {
	p, _ := fresh(t, Config{})
	check.Err(t, p.Limit(watched(t), 1<<20))
	for name, store := range map[string]string{
		"cache": `caches.open("c").then((c) => c.put("/file", new Response(data)))`,
		"indexeddb": `new Promise((done, failed) => {
			const open = indexedDB.open("d");
			open.onupgradeneeded = () => open.result.createObjectStore("s");
			open.onsuccess = () => {
				const add = open.result.transaction("s", "readwrite");
				add.objectStore("s").add(data, 1);
				add.oncomplete = done;
				add.onabort = () => failed(add.error);
			};
		})`,
		"opfs": `navigator.storage.getDirectory().then((d) => d.getFileHandle("f", { create: true }))
			.then((f) => f.createWritable()).then((w) => w.write(data).then(() => w.close()))`,
	} {
		_, err := callIn[any](watched(t), p, PageThread,
			`(() => {
				const data = new Uint8Array(8 << 20); // random, because a database compresses it
				for (let i = 0; i < data.length; i += 65536) crypto.getRandomValues(data.subarray(i, i + 65536));
				return `+store+`.then(() => true);
			})()`)
		err = overQuota(err)
		t.Logf("%s: %v", name, err)
		if engine.ClassOf(err) != record.Quota || fault.Of(err) != fault.Quota || !oneLine(err) {
			t.Errorf("%s: class %s, %s of %v", name, engine.ClassOf(err), fault.Of(err), err)
		}
	}
}
