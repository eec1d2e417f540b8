"""Times the operators of a generation with torch's profiler, by layer and module, and its Python calls with cProfile."""

import contextlib
import cProfile
import io
import pstats
import re

LAYER = re.compile(r"(?:layers|h|blocks)\.(\d+)(?:\.|$)")


class Marks:
    """A streamer that marks each token in the profile, and the loop between tokens, before it passes tokens on."""

    def __init__(self, streamer, mark):
        self.streamer, self.mark, self.span = streamer, mark, None

    def begin(self):
        self.span = self.mark("loop")
        self.span.__enter__()

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
    """A profile of one generation."""

    def __init__(self, model, prefix, device, width):
        from torch.profiler import ProfilerActivity, profile, record_function

        self.model, self.prefix, self.width, self.mark = model, prefix, width, record_function
        self.gpu = device.type == "cuda"
        activities = [ProfilerActivity.CPU] + [ProfilerActivity.CUDA] * self.gpu
        self.profile = profile(activities=activities, record_shapes=True, profile_memory=True)
        self.files = []

    def run(self, streamer, generate):
        marks, open_spans, hooks = Marks(streamer, self.mark), [], []

        def enter(name):
            def hook(*_):
                span = self.mark("module:" + name)
                span.__enter__()
                open_spans.append(span)
            return hook

        def leave(*_):
            open_spans.pop().__exit__(None, None, None)

        for name, module in self.model.named_modules():
            hooks += [module.register_forward_pre_hook(enter(name or "model")), module.register_forward_hook(leave)]
        try:
            with self.profile:
                marks.begin()
                generate(marks)
                marks.end()
        finally:
            for hook in hooks:
                hook.remove()

    def calls(self, generate):
        """Runs once more for the table of Python's calls."""
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
        """One row per phase, layer, role and operator. A GPU's operators have its time, and waits that of the loop."""
        events = sorted((e for e in self.profile.events() if self.main(e)), key=lambda e: e.time_range.start)
        loops = [e.time_range for e in events if e.name == "loop"]
        if len(loops) < 2:
            return []
        first, last = loops[0].end, loops[-2].end
        rows = {}
        for e in events:
            start = e.time_range.start
            if start >= last:
                continue  # after the last token
            self_us = e.self_device_time_total if self.gpu else e.self_cpu_time_total
            path = self.module(e)
            layer = LAYER.search(path)
            ours = e.name == "loop" or e.name.startswith("module:")
            kernel = "Python and dispatch" if ours else e.name
            key = ("prefill" if start < first else "decode", int(layer.group(1)) if layer else None, "" if ours else path, kernel)
            row = rows.setdefault(key, [0, 0, 0])
            row[0] += 1
            row[1] += self_us * 1000
            row[2] += 0 if ours or e.cpu_children else self.bytes(e)
        return [{"phase": phase, "layer": layer, "module": path, "kernel": kernel, "calls": calls, "self_ns": round(ns), "bytes": size}
                for (phase, layer, path, kernel), (calls, ns, size) in rows.items()]

    def main(self, event):
        if not hasattr(self, "thread"):
            self.thread = next((e.thread for e in self.profile.events() if e.name == "loop"), None)
        return event.thread == self.thread and not getattr(event, "is_async", False)

    @staticmethod
    def module(event):
        """The path of the innermost module around an operator; empty in the loop."""
        while event is not None:
            if event.name.startswith("module:"):
                return event.name[len("module:"):]
            event = event.cpu_parent
        return ""

    def bytes(self, event):
        size = 0
        for shape in event.input_shapes or []:
            count = 1 if shape else 0
            for n in shape or []:
                if not isinstance(n, int):
                    count = 0
                    break
                count *= n
            size += count * self.width
        return size

    def answer(self):
        averages = self.profile.key_averages(group_by_input_shape=True)
        place = "cuda" if self.gpu else "cpu"
        for by, ending in ((f"self_{place}_time_total", ".operators.txt"), (f"self_{place}_memory_usage", ".memory.txt")):
            self.write(ending, averages.table(sort_by=by, row_limit=60, max_name_column_width=60))
        self.profile.export_chrome_trace(self.named(".trace.json"))
        if self.gpu:
            import torch

            with contextlib.suppress(RuntimeError):
                torch.cuda.memory._dump_snapshot(self.named(".memory.pickle"))
        return {"rows": self.rows(), "files": self.files,
                "notes": ["bytes are those of an operator's inputs in the model's dtype"]}


