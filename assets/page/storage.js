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

// walked lists the files of the page's file system, the oldest first: their names are hashes.
async function walked() {
  const out = [];
  async function walk(folder) {
    for await (const [name, handle] of folder.entries()) {
      if (handle.kind === "directory") {
        await walk(handle);
        continue;
      }
      const { lastModified, size } = await handle.getFile();
      out.push({ handle, at: lastModified, size, drop: () => folder.removeEntry(name) });
    }
  }
  await walk(await navigator.storage.getDirectory());
  return out.sort((a, b) => a.at - b.at);
}

const files = async () => (await walked()).map(({ drop }) => drop);

// cut leaves the first half of all bytes. The file in which they end is cut short.
async function cut() {
  const all = await walked();
  let left = Math.floor(all.reduce((sum, { size }) => sum + size, 0) / 2);
  for (const { handle, size, drop } of all) {
    if (left <= 0) {
      await drop();
    } else if (size > left) {
      const writable = await handle.createWritable({ keepExistingData: true });
      await writable.truncate(left);
      await writable.close();
    }
    left -= size;
  }
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

// empty removes all files, also those of earlier pages of this origin.
export async function empty() {
  for (const kind of Object.keys(kinds)) {
    for (const drop of await list(kind)) await drop();
  }
}

// halve removes the last half of the files of each kind, which an interrupted download had not stored yet. An engine that
// writes files in place has the last one cut short, too.
export async function halve(inPlace) {
  if (inPlace) return cut();
  for (const kind of Object.keys(kinds)) {
    const all = await list(kind);
    for (const drop of all.slice(Math.ceil(all.length / 2))) await drop();
  }
}
