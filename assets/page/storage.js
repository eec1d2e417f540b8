// What the page's origin keeps in the browser, by the names that plans have: responses of the Cache API, records of IndexedDB, and files
// of its own file system. Engines keep a file of a model as one of these, so each counts as a file.

const done = (request) => new Promise((resolve, reject) => {
  request.onsuccess = () => resolve(request.result);
  request.onerror = () => reject(request.error);
});

async function cached() {
  const out = [];
  for (const name of await caches.keys()) {
    const cache = await caches.open(name);
    for (const request of await cache.keys()) out.push(() => cache.delete(request));
  }
  return out;
}

async function records() {
  const out = [];
  for (const { name } of await indexedDB.databases()) {
    const open = () => done(indexedDB.open(name));
    const db = await open();
    for (const store of db.objectStoreNames) {
      for (const key of await done(db.transaction(store).objectStore(store).getAllKeys())) {
        out.push(async () => {
          const again = await open();
          await done(again.transaction(store, "readwrite").objectStore(store).delete(key));
          again.close();
        });
      }
    }
    db.close(); // an open one keeps the engine from changing it
  }
  return out;
}

// files lists those below a folder, the oldest first: their names are hashes.
async function files() {
  const out = [];
  async function walk(folder) {
    for await (const [name, handle] of folder.entries()) {
      if (handle.kind === "directory") await walk(handle);
      else out.push({ at: (await handle.getFile()).lastModified, drop: () => folder.removeEntry(name) });
    }
  }
  await walk(await navigator.storage.getDirectory());
  return out.sort((a, b) => a.at - b.at).map(({ drop }) => drop);
}

const kinds = { cache: cached, indexeddb: records, opfs: files };

// list is [] where the browser has no such storage.
async function list(kind) {
  try {
    return await kinds[kind]();
  } catch (e) {
    if (e instanceof ReferenceError || e instanceof TypeError || e.name === "SecurityError") return [];
    throw e;
  }
}

// usage counts the files, and returns the bytes that the browser reports.
export async function usage() {
  const { usage, quota } = await navigator.storage.estimate();
  const counts = {};
  for (const kind of Object.keys(kinds)) counts[kind] = (await list(kind)).length;
  return { usage, quota, files: counts, crossOrigin: typeof navigator.crossOriginStorage?.getFileHandle === "function" };
}

// halve removes the last half of the files of each kind, which an interrupted download had not stored yet.
export async function halve() {
  for (const kind of Object.keys(kinds)) {
    const all = await list(kind);
    for (const drop of all.slice(Math.ceil(all.length / 2))) await drop();
  }
}
