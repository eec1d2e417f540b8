// How long the page's main thread is blocked at a time: nothing can be clicked or drawn meanwhile. Browsers agree on no
// interface for this, so a timer is late: a block is known from when the timer was due, and so to within a beat. That costs the
// thread about 0.1% of its time.

const every = 20; // ms, a beat
const slot = 250; // ms: of each the longest block is kept
const most = 20000; // slots

const now = () => performance.timeOrigin + performance.now();

let longestIn = new Map(); // slot -> [begin, end]
let due = 0;
let timer;

function beat() {
  note();
  timer = setTimeout(beat, every);
}

// note keeps the block that ends now, if there is one.
function note() {
  const end = now(), key = Math.floor(end / slot);
  const [begin, before] = longestIn.get(key) ?? [0, 0];
  if (end - due > before - begin && longestIn.size < most) longestIn.set(key, [due, end]);
  due = end + every;
}

// watch begins to watch.
export function watch() {
  clearTimeout(timer);
  longestIn = new Map();
  due = now() + every;
  timer = setTimeout(beat, every);
}

// longest ends the watch, and returns the longest block in each time between begin and end, or null if there was none.
export function longest(times) {
  note();
  clearTimeout(timer);
  const blocks = [...longestIn.values()];
  return times.map(([begin, end]) => {
    const inside = blocks.map((b) => [Math.max(begin, b[0]), Math.min(end, b[1])]).filter(([from, to]) => to > from);
    return inside.reduce((a, b) => (a && a[1] - a[0] >= b[1] - b[0] ? a : b), null);
  });
}
