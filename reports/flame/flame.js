// A flame graph: the time of a function is its width, and what it calls is below it. Click a function to enlarge it, type to find
// one. Between two profiles, colour is the change of a function's share.
"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
const picture = document.getElementById("flame"), words = document.getElementById("words");
const search = document.getElementById("search"), back = document.getElementById("back");

// tree makes a tree of stacks: { name, self, was, value, before, children }.
function tree({ stacks, other }) {
  const root = { name: "all", value: 0, before: 0, children: new Map() };
  const add = (all, field) => {
    for (const [stack, n] of Object.entries(all ?? {})) {
      let at = root;
      at[field] += n;
      for (const name of stack.split(";")) {
        if (!at.children.has(name)) at.children.set(name, { name, value: 0, before: 0, children: new Map(), parent: at });
        at = at.children.get(name);
        at[field] += n;
      }
    }
  };
  add(stacks, "value");
  add(other, "before");
  return root;
}

const root = tree(data);
const compares = Boolean(data.other);
let shown = root;

const share = (node) => node.value / Math.max(1, root.value);
const change = (node) => share(node) - node.before / Math.max(1, root.before);

// certain tells whether a change is more than chance, as far as samples can tell: more than two standard errors.
function certain(node) {
  const sampled = (part, all) => { const p = part / Math.max(1, all); return (p * (1 - p)) / Math.max(1, all); };
  const error = Math.sqrt(sampled(node.value, root.value) + sampled(node.before, root.before));
  return data.seconds < 0.001 || Math.abs(change(node)) > 2 * error; // shorter ones are times, not counts
}

const percent = (v) => `${(100 * v).toFixed(1)}%`;

function describe(node) {
  const time = `${(node.value * data.seconds).toPrecision(3)} s`;
  return `${node.name}: ${time}, ${percent(share(node))}${compares ? `, ${change(node) < 0 ? "" : "+"}${percent(change(node))}` : ""}`;
}

// colourOf is warm by name; of a comparison red where the share grew, blue where it fell, and grey where that may be chance.
function colourOf(node) {
  if (compares && !certain(node)) return "hsl(0 0% 90%)";
  if (compares) {
    const c = Math.max(-1, Math.min(1, change(node) * 10));
    return c >= 0 ? `hsl(10 85% ${92 - 40 * c}%)` : `hsl(215 80% ${92 + 40 * c}%)`;
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
    const size = (n) => (compares ? Math.max(n.value, 0) : n.value);
    let x = left;
    for (const child of [...node.children.values()].sort((a, b) => (a.name < b.name ? -1 : 1))) {
      const w = width * size(child) / Math.max(1, node.value);
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
