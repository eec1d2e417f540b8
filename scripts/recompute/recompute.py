"""Recompute a run's headline figures from its record with pandas.

    recompute.py FOLDER

The record is totals.csv and tokens.csv, and of journal.jsonl the phases, the requests and which launches count, which
no CSV has. Nothing that llmparity worked out is read. The output is JSON: of each cell the values by launch, their
median and its interval, and of each two cells the ratio of the medians with the range in which each end of its
bootstrap interval must lie.

It can't recompute cells with traffic, engines with a process a generation, or repetitions that share a launch.
"""

import json
import math
import sys
from pathlib import Path

import numpy
import pandas

CONFIDENCE = 0.95
DRAWS = 200_000
# A share of so many draws is known to about 0.0004 at 2.5%: four times that is the Monte Carlo tolerance.
TOLERANCE = 0.0015


def journal(folder):
    """Phases, requests with their prefill span, and the cell of each launch that counts."""
    phases, requests, cells, ended = [], {}, {}, set()
    for line in (folder / "journal.jsonl").open():
        event = json.loads(line)
        attempt = event.get("attempt")
        if "begin" in event and not event["begin"].get("warmup") and "scoring" not in event["begin"]:
            if event["begin"].get("opened_by"):
                sys.exit(f"attempt {attempt} shares its launch")
            cells[attempt] = event["begin"]["cell"]
        elif "phase" in event:
            phases.append({"attempt": attempt, **event["phase"]})
        elif "request" in event:
            request = event["request"]
            requests[attempt, request["id"]] = {
                "attempt": attempt,
                "request": request["id"],
                "phase": request["phase"],
                "sent": request.get("due_ns") or request["sent_ns"],
                "computed": len(request["prompt_ids"]) - request["cached_tokens"],
            }
        elif event.get("span", {}).get("name") == "prefill":
            span = event["span"]
            requests[attempt, span["request"]]["prefill_ns"] = span["end_ns"] - span["begin_ns"]
        elif event.get("end", {}).get("status") == "ok":
            ended.add(attempt)
    counted = pandas.Series({a: c for a, c in cells.items() if a in ended}, name="cell")
    return pandas.DataFrame(phases), pandas.DataFrame(requests.values()), counted


def figures(folder):
    """One row a counted launch."""
    phases, requests, counted = journal(folder)
    totals = pandas.read_csv(folder / "totals.csv")
    tokens = pandas.read_csv(folder / "tokens.csv")
    phases["until"] = phases.groupby("attempt").begin_ns.shift(-1, fill_value=math.inf)

    def named(name):
        return phases[phases.name == name].set_index("attempt")

    out = pandas.DataFrame(index=counted.index)
    out["peak_pss"] = totals.groupby("attempt").pss_mb.max()
    pss = totals[totals.method == "smaps_rollup"].join(named("baseline"), on="attempt")
    before = pss[(pss.t_ns >= pss.begin_ns) & (pss.t_ns < pss.until)].groupby("attempt").pss_mb.median()
    load = named("load")
    unborn = totals.groupby("attempt").t_ns.min() >= load.begin_ns
    # An engine without a process before the load grows from nothing.
    out["memory_increase"] = out.peak_pss - before.reindex(out.index).mask(unborn, 0)
    out["load_time"] = (load.end_ns - load.begin_ns) / 1e6

    times = tokens.groupby(["attempt", "request"]).t_ns.agg(["min", "max", "size"])
    asked = requests[requests.phase == "measure"].set_index(["attempt", "request"]).join(times)
    asked["ttft"] = (asked["min"] - asked.sent) / 1e6
    asked["decode_tps"] = (asked["size"] - 1) / (asked["max"] - asked["min"]) * 1e9
    asked["prefill_tps"] = asked.computed / asked.prefill_ns * 1e9
    return out.join(asked.groupby("attempt")[["ttft", "decode_tps", "prefill_tps"]].median()), counted


def interval(values):
    """The shortest stretch of order statistics that holds the median with the confidence; of equals the likeliest."""
    n = len(values)
    chance = numpy.array([math.comb(n, k) for k in range(n + 1)]) / 2.0**n  # that k values lie below the median
    for width in range(1, n + 2):
        held = numpy.convolve(chance, numpy.ones(width), "valid")
        first = int(numpy.argmax(held > held.max() - 1e-12))
        if held[first] >= CONFIDENCE:
            if first == 0 or first + width > n:
                return None
            ordered = numpy.sort(values)
            return {"lo": ordered[first - 1], "hi": ordered[first + width - 1], "confidence": held[first]}
    return None


def ratio(a, b):
    """The ratio of the medians, and where the ends of its percentile bootstrap interval must lie."""
    random = numpy.random.default_rng(20)
    drawn = [numpy.median(random.choice(x, (DRAWS, len(x))), axis=1) for x in (a, b)]
    tail = (1 - CONFIDENCE) / 2
    ends = [[end - TOLERANCE, end + TOLERANCE] for end in (tail, 1 - tail)]
    lo, hi = numpy.quantile(drawn[0] / drawn[1], ends, method="inverted_cdf")
    return {"ratio": numpy.median(a) / numpy.median(b), "lo": list(lo), "hi": list(hi)}


def main():
    launches, cell = figures(Path(sys.argv[1]))
    cells, ratios = {}, {}
    for number, group in launches.groupby(cell):
        cells[str(number)] = {
            name: {"values": list(values), "median": values.median(), "interval": interval(values.to_numpy())}
            for name, values in group.items()
        }
    for a in cells:
        for b in cells:
            if a < b:
                ratios[f"{a}/{b}"] = {
                    name: ratio(numpy.array(cells[a][name]["values"]), numpy.array(cells[b][name]["values"]))
                    for name in launches
                }
    json.dump({"cells": cells, "ratios": ratios}, sys.stdout, indent=1)


if __name__ == "__main__":
    main()
