"""Says what a generation does and holds: operators by torch's profiler, memory at checkpoints and of each layer, Python's calls."""

import contextlib
import cProfile
import io
import pstats
import re
import time

LAYER = re.compile(r"(?:layers|h|blocks)\.(\d+)(?:\.|$)")
WAITING = "Python and dispatch"
# Operators that make a tensor, or look at one in another shape: they read no elements.
LOOKS = re.compile(r"aten::(view|_?reshape|_reshape_alias|_unsafe_view|as_strided|t|transpose|permute|slice|select|narrow|split|chunk|"
                   r"unbind|(un)?squeeze|expand|alias|detach|empty\w*|resize_|resolve_\w+|result_type|item|_local_scalar_dense|lift_fresh|set_)$")
SIZES = {"weights_bytes": "weights", "buffers_bytes": "buffers", "kv_used_bytes": "KV cache", "torch_allocated_bytes": "torch allocated",
         "torch_reserved_bytes": "torch reserved", "torch_peak_bytes": "torch peak"}


class Checkpoints:
    """What the process and torch hold at four moments."""

    def __init__(self):
        self.rows = []

    def take(self, at, sizes):
        found = {}
        with contextlib.suppress(OSError):  # only Linux has it
            with open("/proc/self/smaps_rollup", encoding="ascii") as f:
                for line in f:
                    name, *rest = line.split()
                    if name in ("Pss:", "Rss:"):
                        found[name[:-1].upper()] = int(rest[0]) << 10
        found |= {SIZES[name]: size for name, size in sizes.items() if name in SIZES}
        self.rows = [row for row in self.rows if row["at"] != at]
        self.rows += [{"at": at, "what": what, "bytes": size} for what, size in found.items()]

    def text(self):
        whats = list(dict.fromkeys(row["what"] for row in self.rows))
        lines = ["MiB".ljust(18) + "".join(what.rjust(17) for what in whats)]
        for at in dict.fromkeys(row["at"] for row in self.rows):
            has = {row["what"]: f"{row['bytes'] / 2**20:.2f}" for row in self.rows if row["at"] == at}
            lines.append(at.ljust(18) + "".join(has.get(what, "").rjust(17) for what in whats))
        return "\n".join(lines) + "\n"


class Marks:
    """A streamer that marks each token in the profile, and the loop between tokens, before it passes tokens on."""

    def __init__(self, streamer, mark):
        self.streamer, self.mark, self.span, self.times = streamer, mark, None, []

    def begin(self):
        self.span = self.mark("loop")
        self.span.__enter__()
        self.times.append(time.monotonic_ns())

    def put(self, value):
        self.streamer.put(value)
        if self.streamer.rows[0].ids:  # else it was the prompt
            self.end()
            self.begin()

    def end(self):
        if self.span is not None:
            self.span.__exit__(None, None, None)
            self.span = None


class Deep:
    """A profile of a request, which is generated once for each kind of instrument."""

    def __init__(self, model, prefix, device, width, checkpoints):
        from torch.profiler import ProfilerActivity, profile, record_function

        self.model, self.prefix, self.width, self.mark, self.checkpoints = model, prefix, width, record_function, checkpoints
        self.device, self.gpu = device.type, device.type == "cuda"
        activities = [ProfilerActivity.CPU] + [ProfilerActivity.CUDA] * self.gpu
        self.profile = profile(activities=activities, record_shapes=True, profile_memory=True)
        self.files, self.layers, self.thread = [], [], None

    @contextlib.contextmanager
    def hooked(self, enter, leave):
        """Calls functions around the forward pass of each module, with its path."""
        hooks = []
        for name, module in self.model.named_modules():
            hooks.append(module.register_forward_pre_hook(lambda m, _, name=name: enter(name)))
            hooks.append(module.register_forward_hook(lambda m, _, output, name=name: leave(name, output)))
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()

    def memory(self, live, generate, cache, pairs):
        """Generates for what each layer holds: its parameters, its part of the KV cache, the most of its intermediate tensors."""
        for name, p in self.model.named_parameters():
            self.hold("after load", name.rpartition(".")[0], "parameters", p.numel() * p.element_size())
        most, passes = {}, 0
        layers = {name for name, _ in self.model.named_modules() if re.search(LAYER.pattern + "$", name)}

        def enter(name):
            nonlocal passes
            passes += not name
            if name in layers:
                live.most = 0

        def leave(name, _):
            if name in layers:
                key = "prefill" if passes == 1 else "decode", name
                most[key] = max(most.get(key, 0), live.most)

        with self.hooked(enter, leave), live:
            generate()
        for (phase, name), size in most.items():
            self.hold(phase, name, "intermediate tensors", size)
        for i, pair in enumerate(pairs(cache())):
            size = sum(t.numel() * t.element_size() for t in pair if t is not None)
            self.hold("after inference", f"layers.{i}.kv_cache", "KV cache", size)

    def hold(self, at, module, what, size):
        layer = LAYER.search(module)
        self.layers.append({"at": at, "layer": int(layer.group(1)) if layer else None, "module": module, "what": what, "bytes": size})

    def run(self, streamer, generate):
        self.marks, spans = Marks(streamer, self.mark), []

        def enter(name):
            spans.append(self.mark("module:" + (name or "model")))
            spans[-1].__enter__()

        with self.hooked(enter, lambda *_: spans.pop().__exit__(None, None, None)), self.profile:
            with self.mark("module:first"):
                pass  # the first takes milliseconds
            self.marks.begin()
            generate(self.marks)
            self.marks.end()

    def calls(self, generate):
        """Generates for the table of Python's calls."""
        calls = cProfile.Profile()
        calls.runcall(generate)
        calls.dump_stats(self.named(".prof"))
        text = io.StringIO()
        for by in ("ncalls", "tottime"):
            pstats.Stats(calls, stream=text).strip_dirs().sort_stats(by).print_stats(40)
        self.write(".calls.txt", text.getvalue())

    def named(self, ending):
        self.files.append(self.prefix + ending)
        return self.files[-1]

    def write(self, ending, text):
        with open(self.named(ending), "w", encoding="utf-8") as f:
            f.write(text)

    def rows(self):
        """One row per phase, layer, module and operator, and what lies between operators, by its own begin and end."""
        events = sorted((e for e in self.profile.events() if self.main(e)), key=lambda e: e.time_range.start)
        loops = [e.time_range for e in events if e.name == "loop"]
        if len(loops) < 2:
            return []
        begin, first, last = loops[0].start, loops[0].end, loops[-2].end
        rows = {}

        def add(at, path, kernel, us, size=0):
            layer = LAYER.search(path)
            key = ("prefill" if at < first else "decode", int(layer.group(1)) if layer else None, "" if kernel == WAITING else path, kernel)
            row = rows.setdefault(key, [0, 0, 0])
            row[0], row[1], row[2] = row[0] + 1, row[1] + us * 1000, row[2] + size

        for e in events:
            if not self.ours(e) and begin <= e.time_range.start < last:
                us = e.self_device_time_total if self.gpu else e.self_cpu_time_total
                # An operator that calls others reads by them.
                size = 0 if any(map(self.reads, e.cpu_children)) else self.bytes(e)
                add(e.time_range.start, self.module(e), e.name, us, size)
        busy = [(e.time_range.start, e.time_range.end, self.module(e)) for e in self.busy(events)]
        for start, end, path in [*busy, (last, last, "")]:
            for a, b in ((begin, min(start, first)), (max(begin, first), min(start, last))):
                if b > a:  # nothing computed
                    add(a, path, WAITING, b - a)
            begin = max(begin, end)
        return [{"phase": phase, "layer": layer, "module": path, "kernel": kernel, "calls": calls, "self_ns": round(ns), "bytes": size}
                for (phase, layer, path, kernel), (calls, ns, size) in rows.items()]

    def busy(self, events):
        """What computes, by its begin: kernels of a GPU, else operators that no operator called."""
        if self.gpu:
            kernels = [e for e in self.profile.events() if e.device_type.name == "CUDA" and not self.ours(e)]
            return sorted(kernels, key=lambda e: e.time_range.start)
        return [e for e in events if not self.ours(e) and (e.cpu_parent is None or self.ours(e.cpu_parent))]

    @staticmethod
    def ours(event):
        return event.name == "loop" or event.name.startswith("module:")

    def main(self, event):
        if self.thread is None:
            self.thread = next((e.thread for e in self.profile.events() if e.name == "loop"), None)
        return (event.thread == self.thread and event.device_type.name == "CPU" and event.name != "[memory]" and
                not getattr(event, "is_async", False))

    @staticmethod
    def module(event):
        """The path of the innermost module around an operator; empty in the loop."""
        while event is not None:
            if event.name.startswith("module:"):
                return event.name[len("module:"):]
            event = event.cpu_parent
        return ""

    def reads(self, event):
        return self.bytes(event) > 0 or any(map(self.reads, event.cpu_children))

    def bytes(self, event):
        """The bytes of the inputs that an operator reads, in the model's dtype."""
        shapes = [s for s in event.input_shapes or [] if s and all(isinstance(n, int) for n in s)]
        if LOOKS.match(event.name) or not shapes:
            return 0
        counts = [math.prod(s) for s in shapes]
        if event.name in ("aten::embedding", "aten::index_select"):  # of a table, the rows that are named
            return counts[-1] * shapes[0][-1] * self.width
        return sum(counts) * self.width

    def answer(self):
        averages = self.profile.key_averages(group_by_input_shape=True)
        averages[:] = [a for a in averages if a.key != "loop" and not a.key.startswith("module:")]
        device = "device" if self.gpu else "cpu"
        for by, ending in ((f"self_{device}_time_total", ".operators.txt"), (f"self_{device}_memory_usage", ".memory.txt")):
            self.write(ending, averages.table(sort_by=by, row_limit=60, max_name_column_width=60))
        self.profile.export_chrome_trace(self.named(".trace.json"))
        notes = ["MiB are those of an operator's inputs, in the model's dtype, without lists, of which torch records no shapes"]
        if self.gpu:
            torch.cuda.memory._dump_snapshot(self.named(".memory.pickle"))
        else:
            notes.append(f"no memory snapshot: torch makes them of its CUDA allocator, and the model is on the {self.device}")
        if not any(row["what"] == "PSS" for row in self.checkpoints.rows):
            notes.append("checkpoints lack PSS and RSS, which only Linux tells")
        self.write(".checkpoints.txt", self.checkpoints.text())
        lines = (f"{row['at']:16} {row['module']:50} {row['what']:20} {row['bytes']:>14}\n" for row in self.layers)
        self.write(".layers.txt", "".join(lines))
        times = self.marks.times
        return {"rows": self.rows(), "memory": self.checkpoints.rows + self.layers, "files": self.files, "notes": notes,
                "wall_ns": {"prefill": times[1] - times[0], "decode": times[-1] - times[1]}}


