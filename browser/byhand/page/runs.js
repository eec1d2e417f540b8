// The table of this session's runs, side by side.

const $ = (id) => document.getElementById(id);

export function make(tag, text, attributes = {}) {
  const e = document.createElement(tag);
  e.textContent = text;
  for (const [name, value] of Object.entries(attributes)) e.setAttribute(name, value);
  return e;
}

const columns = [
  ["decode_tokens_per_s", "Decode, tok/s"], ["ttft_ms", "Time to first token, ms"], ["load_time_ms", "Load, ms"],
  ["peak_pss_mb", "Peak memory, MiB"], ["memory_increase_mb", "Memory increase, MiB"], ["model_weights_mb", "Weights, MiB"],
  ["kv_cache_mb", "KV cache, MiB"], ["longest_block_ms", "Longest block, ms"],
];
const number = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 });

function figure(cell, [name, title]) {
  const td = make("td", "", { class: "n", "data-head": title });
  if (!(name in cell)) {
    td.append("–");
    return td;
  }
  td.append(number.format(cell[name]));
  const [low, high] = [cell[`${name}_lo`], cell[`${name}_hi`]];
  if (low && high) td.append(make("small", `${number.format(low)} to ${number.format(high)}`));
  return td;
}

// tabulate shows the runs; say shows what became of keeping one.
export function tabulate(runs, say) {
  const cells = runs.flatMap((run) => (run.cells?.length ? run.cells : [{}]).map((cell) => [run, cell]));
  const has = columns.filter(([name]) => cells.some(([, cell]) => name in cell));
  $("runs").hidden = cells.length === 0;
  $("none").hidden = cells.length > 0;
  $("runs").tHead.rows[0].replaceChildren(...["Run", "Keep", "Launches"].map((t) => make("th", t, { scope: "col" })),
    ...has.map(([, title]) => make("th", title, { scope: "col", class: "n" })));
  $("runs").tBodies[0].replaceChildren(...cells.map(([run, cell]) => {
    const row = make("tr", ""), name = make("th", `${run.id}. ${run.engine ?? cell.engine ?? ""}`, { scope: "row" });
    name.append(make("small", [cell.model, run.asked, run.who].filter(Boolean).join(", ")));
    if (run.error || cell.failures || cell.refused) name.append(make("small", run.error ?? cell.refused ?? cell.failures, { class: "miss" }));
    row.append(name, keep(run, say), make("td", cell.launches_counted ?? "–", { "data-head": "Launches" }), ...has.map((column) => figure(cell, column)));
    return row;
  }));
}

// keep offers to export a run and to save it.
function keep(run, say) {
  const td = make("td", "", { class: "keep", "data-head": "Keep" });
  const button = make("button", "", { type: "button" });
  const label = () => {
    button.textContent = run.saved ? "Saved" : "Save as a run";
    button.setAttribute("aria-label", `${button.textContent}: ${run.id}`);
    button.disabled = Boolean(run.saved);
  };
  label();
  button.addEventListener("click", async () => {
    button.disabled = true;
    const answer = await fetch(`runs/${run.id}/save`, { method: "POST" }).catch(() => undefined);
    if (!answer?.ok) {
      button.disabled = false;
      return say(answer ? (await answer.text()).trim() : "llmparity does not answer.", true);
    }
    run.saved = (await answer.json()).saved;
    label();
    say(`Run ${run.id} is saved in ${run.saved}.`);
  });
  td.append(button);
  for (const [format, text] of [["csv", "Export CSV"], ["json", "JSON"], ["html", "Report"]]) {
    td.append(make("a", text, { href: `runs/${run.id}/${format}`, download: "", "aria-label": `${text} of run ${run.id}` }));
  }
  return td;
}
