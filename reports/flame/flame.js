// A flame graph: the time of a function is its width, and what it calls is below it. Click a function to enlarge it, type to find
// one. Between two profiles, colour is the change of a function's own time.
"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
const picture = document.getElementById("flame"), words = document.getElementById("words");
const search = document.getElementById("search"), back = document.getElementById("back");

// tree makes a tree of stacks: { name, value, by, children }.
function tree({ stacks, changes }) {
  const root = { name: "all", value: 0, by: 0, children: new Map() };
  const walk = (stack, visit) => {
    let at = root;
    visit(at);
    for (const name of stack.split(";")) {
      if (!at.children.has(name)) at.children.set(name, { name, value: 0, by: 0, children: new Map(), parent: at });
      at = at.children.get(name);
      visit(at);
    }
    return at;
  };
  for (const [stack, n] of Object.entries(stacks)) walk(stack, (at) => { at.value += n; });
  for (const [stack, seconds] of Object.entries(changes ?? {})) walk(stack, () => {}).by = seconds;
  return root;
}

const root = tree(data);
const largest = Math.max(...Object.values(data.changes ?? {}).map(Math.abs));
let shown = root;

const share = (node) => node.value / Math.max(1, root.value);

const percent = (v) => `${(100 * v).toFixed(1)}%`;

function describe(node) {
  const time = `${(node.value * data.seconds).toPrecision(3)} s`;
  const by = node.by ? `, its own ${node.by < 0 ? "" : "+"}${(1e3 * node.by).toPrecision(3)} ms in a generation` : "";
  return `${node.name}: ${time}, ${percent(share(node))}${by}`;
}

// colourOf is warm by name; of a comparison red where a function's own time grew, blue where it fell, and else grey.
function colourOf(node) {
  if (data.changes) {
    const c = node.by / largest || 0;
    return c === 0 ? "hsl(0 0% 90%)" : c > 0 ? `hsl(10 85% ${82 - 30 * c}%)` : `hsl(215 80% ${82 + 30 * c}%)`;
  }
  let hash = 0;
  for (const letter of node.name) hash = (hash * 31 + letter.codePointAt(0)) >>> 0;
  return `hsl(${20 + (hash % 35)} 80% ${68 + (hash % 12)}%)`;
}

const rowHeight = 20, least = 0.0005;

function draw() {
  picture.replaceChildren();
  const found = search.value.trim().toLowerCase();
  let deepest = 0, hits = 0;
  const rectangle = (node, left, width, depth) => {
    const box = document.createElement("button");
    const hit = found && node.name.toLowerCase().includes(found);
    box.type = "button";
    box.className = hit ? "hit" : "";
    box.style.cssText = `left:${100 * left}%;width:${100 * width}%;top:${depth * rowHeight}px;background:${hit ? "#a5f" : colourOf(node)}`;
    box.textContent = node.name;
    box.title = describe(node);
    box.onclick = () => { shown = node; draw(); };
    box.onfocus = box.onmouseenter = () => { words.textContent = describe(node); };
    picture.append(box);
    deepest = Math.max(deepest, depth);
    return hit;
  };
  const ancestors = [];
  for (let at = shown.parent; at; at = at.parent) ancestors.unshift(at);
  ancestors.forEach((node, depth) => rectangle(node, 0, 1, depth));
  const below = (node, left, width, depth, inside) => {
    if (width < least) return;
    const hit = rectangle(node, left, width, depth) && !inside;
    if (hit) hits += node.value;
    let x = left;
    for (const child of [...node.children.values()].sort((a, b) => (a.name < b.name ? -1 : 1))) {
      const w = width * child.value / Math.max(1, node.value);
      below(child, x, w, depth + 1, inside || hit);
      x += w;
    }
  };
  below(shown, 0, 1, ancestors.length, false);
  picture.style.height = `${(deepest + 1) * rowHeight}px`;
  words.textContent = found ? `“${search.value}”: ${percent(hits / Math.max(1, shown.value))} of what is shown` : describe(shown);
  back.hidden = shown === root;
}

search.oninput = draw;
back.onclick = () => { shown = root; draw(); };
document.onkeydown = ({ key }) => { if (key === "Escape") { shown = root; draw(); } };
draw();
