"""Runs a language model with Hugging Face's transformers, by the protocol of docs/howto/add-an-engine.md.

It does what a user's script does: AutoTokenizer, AutoModelForCausalLM, generate() with a streamer. A request may have
several prompts, which are one batch: one tensor, with padding on the left.
"""

import argparse
import contextlib
import ctypes
import gc
import inspect
import json
import math
import os
import queue
import random
import sys
import threading
import time
import traceback
import weakref

for name, value in {"HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1", "DO_NOT_TRACK": "1", "TOKENIZERS_PARALLELISM": "false",
                    "HF_HUB_DISABLE_PROGRESS_BARS": "1"}.items():
    os.environ.setdefault(name, value)

# What libraries print belongs into the log.
answers = os.fdopen(os.dup(1), "wb", buffering=0)
os.dup2(2, 1)

imported = threading.Event()


def importing():
    """Says that the program lives, while libraries are imported, which may take minutes: the first request is hello."""
    while not imported.wait(5):
        answers.write(b'{"id":1,"event":"alive"}\n')


threading.Thread(target=importing, daemon=True).start()

import torch  # noqa: E402
import transformers  # noqa: E402
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, PreTrainedTokenizerFast  # noqa: E402
from transformers.generation.streamers import BaseStreamer  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

imported.set()

DTYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
NAMES = {dtype: name for name, dtype in DTYPES.items()}
VERSION = tuple(int(part) for part in transformers.__version__.split(".")[:2])


class Refusal(Exception):
    """An error for people, with its class."""

    def __init__(self, kind, message):
        super().__init__(message)
        self.kind = kind


class Wire:
    """Requests and answers. A thread reads requests all the time, because one may cancel another."""

    def __init__(self):
        self.requests = queue.Queue()
        self.cancelled = set()
        self.lock = threading.Lock()
        self.current = None
        threading.Thread(target=self.read, daemon=True).start()
        threading.Thread(target=self.live, daemon=True).start()

    def read(self):
        for line in sys.stdin.buffer:
            request = json.loads(line)
            if request["op"] == "cancel":
                self.cancelled.add(request["of"])
            else:
                self.requests.put(request)
        os._exit(0)  # nobody is left to answer, whatever is being computed

    def live(self):
        while True:
            time.sleep(5)
            if self.current is not None:
                self.answer("alive")

    def answer(self, event, **fields):
        with self.lock:
            if self.current is not None:
                text = json.dumps({"id": self.current["id"], "event": event, **fields}, allow_nan=False)
                answers.write(text.encode() + b"\n")
                if event in ("done", "error"):
                    self.current = None

    def stopped(self):
        return self.current["id"] in self.cancelled


class Row:
    """A prompt of a batch with its answer."""

    def __init__(self, request, number, batch, tokenizer):
        self.most = request["max_tokens"]
        self.ignore_eos = request.get("ignore_eos", False)
        self.prompt = request.get("prompt_ids") or tokenizer(request["prompt"])["input_ids"]
        self.fields = {"row": number} if batch else {}
        self.tokenizer = tokenizer
        self.ids, self.finish = [], None
        # Text is decoded from a few tokens before the new one: what a token adds depends on them.
        self.context, self.told = self.prompt[-4:], len(self.prompt[-4:])

    def decode(self, ids):
        return self.tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)

    def add(self, id, ns, eos, wire):
        if self.finish:
            return
        self.ids.append(id)
        self.context.append(id)
        before, now = self.decode(self.context[:self.told]), self.decode(self.context)
        text = ""
        if not now.endswith("\ufffd"):  # else a character is incomplete
            text = now[len(before):]
            self.context = self.context[-4:]
            self.told = len(self.context)
        wire.answer("token", token=id, text=text, t_ns=ns, **self.fields)
        if len(self.ids) == self.most:
            self.finish = "length"
        if id in eos and not self.ignore_eos:
            self.finish = "stop"


class Streamer(BaseStreamer):
    """Passes tokens on as generate() has them."""

    def __init__(self, rows, eos, wire):
        self.rows, self.eos, self.wire, self.prompted = rows, eos, wire, False
        # What lives from the prompt to the first token. Torch's modes must begin and end within inference mode.
        self.live, self.within = contextlib.nullcontext(), contextlib.ExitStack()

    def put(self, value):
        now = time.monotonic_ns()
        if not self.prompted:  # the first value is the prompt
            self.prompted = True
            self.within.enter_context(self.live)
            return
        self.within.close()
        for row, id in zip(self.rows, value.reshape(-1).tolist()):
            row.add(id, now, self.eos, self.wire)

    def end(self):
        pass


class Stop(transformers.StoppingCriteria):
    """Ends a row at its last token, and all of them once the request is cancelled."""

    def __init__(self, rows, wire):
        self.rows, self.wire = rows, wire

    def __call__(self, input_ids, scores, **kwargs):
        stopped = self.wire.stopped()
        return torch.tensor([stopped or row.finish is not None for row in self.rows], device=input_ids.device)


def tensors(value):
    """All tensors in nested lists, tuples and dictionaries."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from tensors(one)
    elif isinstance(value, dict):
        for one in value.values():
            yield from tensors(one)


def held(values):
    """The bytes of tensors that share no storage."""
    return sum({t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in values}.values())


def pairs(cache):
    """The keys and values of each layer in a KV cache."""
    layers = getattr(cache, "layers", None)
    if layers is None:  # transformers before 4.54
        return list(zip(cache.key_cache, cache.value_cache))
    return [(getattr(layer, "keys", None), getattr(layer, "values", None)) for layer in layers]


def kept(cache):
    """The bytes of a KV cache, and of the part that is filled."""
    # A layer that is just being made has keys before it has values.
    return sum(t.numel() * t.element_size() for pair in pairs(cache) for t in pair if isinstance(t, torch.Tensor))


class Live(TorchDispatchMode):
    """Counts the bytes of tensors that operators have made and nobody has freed, without those of the KV cache."""

    def __init__(self, known, cache):
        super().__init__()
        self.cache, self.bytes, self.kept, self.most = cache, 0, 0, 0
        self.storages = {t.untyped_storage()._cdata: None for t in known}

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        for t in tensors(out):
            self.add(t.untyped_storage())
        if self.bytes - self.kept > self.most:  # the cache may have grown since it was counted, which takes time
            self.kept = kept(self.cache())
            self.most = max(self.most, self.bytes - self.kept)
        return out

    def add(self, storage):
        key, size = storage._cdata, storage.nbytes()
        if key in self.storages:
            return

        def freed(_):
            del self.storages[key]
            self.bytes -= size

        self.storages[key] = weakref.ref(storage, freed)
        self.bytes += size


def sameness(path, dtype):
    """How weights in a dtype compare with those that a folder, or the GGUF that it was made of, has."""
    exact = {"f32": {"F32", "F16", "BF16"}, "f16": {"F16"}, "bf16": {"BF16"}}[dtype]
    stored = set()
    for name in os.listdir(path):
        if name.endswith(".safetensors"):
            with open(os.path.join(path, name), "rb") as f:
                header = json.loads(f.read(int.from_bytes(f.read(8), "little")))
            stored |= {t["dtype"] for key, t in header.items() if key != "__metadata__"}
    if not stored <= exact:
        return "other_values"
    with contextlib.suppress(OSError):
        with open(os.path.join(path, "llmparity.weights")) as f:
            made = f.read().strip()
            return "same_values" if made == "same_bits" and len(stored) > 1 else made
    return "same_bits" if len(stored) == 1 and stored == {dtype.upper()} else "same_values"


class Model:
    """A loaded model."""

    def __init__(self, options, request, wire):
        self.options, self.wire = options, wire
        self.cache, self.longest, self.activations = None, 0, 0
        self.checkpoints = Checkpoints()
        if options.profile:
            self.checkpoints.take("before load", {})
            if options.device == "cuda":
                torch.cuda.memory._record_memory_history(max_entries=100_000)
        path = request["model"]["path"]
        wire.answer("stage", stage="tokenizer")
        self.tokenizer = self.read_tokenizer(path)
        wire.answer("stage", stage="weights")
        self.asked = request.get("dtype") or "f32"
        if request.get("threads"):
            torch.set_num_threads(request["threads"])
        config = AutoConfig.from_pretrained(path, local_files_only=True)
        own = config.get_text_config()
        settings = {"dtype" if VERSION >= (4, 56) else "torch_dtype": DTYPES[self.asked], "local_files_only": True}
        if options.attention:
            settings["attn_implementation"] = options.attention
        elif getattr(own, "attn_logit_softcapping", None):
            settings["attn_implementation"] = "eager"  # the default one ignores the cap
        if options.device_map:
            settings["device_map"] = options.device_map
        self.window = min(request["model"].get("context") or 1 << 30, getattr(own, "max_position_embeddings", None) or 1 << 30)
        self.rotation = self.rotated(own)
        self.model = AutoModelForCausalLM.from_pretrained(path, config=config, **settings).eval()
        if not options.device_map:
            self.model.to(options.device)
        eos = self.model.generation_config.eos_token_id
        self.eos = set(eos if isinstance(eos, list) else [] if eos is None else [eos])
        if self.tokenizer.eos_token_id is not None:
            self.eos.add(self.tokenizer.eos_token_id)
        self.device = next(self.model.parameters()).device
        if options.compile:
            self.model.forward = torch.compile(self.model.forward)
        if options.profile:
            self.checkpoints.take("after load", self.sizes())

    @staticmethod
    def read_tokenizer(path):
        kind = AutoTokenizer
        with contextlib.suppress(OSError, ValueError):
            with open(os.path.join(path, "tokenizer_config.json"), encoding="utf-8") as f:
                if json.load(f).get("tokenizer_class") == "PreTrainedTokenizerFast":  # others may go by the model's type
                    kind = PreTrainedTokenizerFast
        try:
            return kind.from_pretrained(path, local_files_only=True)
        except (OSError, ValueError, KeyError, ImportError, AttributeError) as e:
            raise Refusal("bad-model", f"the folder's tokenizer cannot be read: {str(e).splitlines()[0][:200]}")

    def rotated(self, config):
        """Takes LongRoPE's factors by the context, as other engines do, and not by the length of each text."""
        rope = getattr(config, "rope_parameters", None) or getattr(config, "rope_scaling", None) or {}
        original = rope.get("original_max_position_embeddings") or getattr(config, "original_max_position_embeddings", 0)
        if rope.get("rope_type", rope.get("type")) != "longrope" or not original or self.window <= original:
            return "the model's"
        if rope.get("attention_factor") is None:
            rope["attention_factor"] = math.sqrt(1 + math.log(config.max_position_embeddings / original) / math.log(original))
        # A model's class would drop its cache where a text passes the original length.
        rope["short_factor"] = rope["long_factor"]
        rope["original_max_position_embeddings"] = config.original_max_position_embeddings = 1 << 30
        return "that of long texts, because of the context"

    def sizes(self):
        """Bytes of tensors, from their own sizes; on a GPU also what torch's allocator says."""
        out = {"weights_bytes": held(self.model.parameters()), "buffers_bytes": held(self.model.buffers())}
        if self.cache is not None:
            out["kv_used_bytes"] = out["kv_reserved_bytes"] = kept(self.cache)
        if self.activations:
            out["workspaces_bytes"] = self.activations
        if self.device.type == "cuda":
            every = range(torch.cuda.device_count())
            out["torch_allocated_bytes"] = sum(map(torch.cuda.memory_allocated, every))
            out["torch_reserved_bytes"] = sum(map(torch.cuda.memory_reserved, every))
            out["torch_peak_bytes"] = sum(map(torch.cuda.max_memory_allocated, every))
        return out

    def policy(self):
        dtypes = sorted({NAMES.get(p.dtype, str(p.dtype)) for p in self.model.parameters()})
        return {"weights_dtype": ", ".join(dtypes), "kv_dtype": self.asked, "threads": str(torch.get_num_threads()),
                "attention": self.attention(), "device": str(self.device), "compile": "on" if self.options.compile else "off",
                "model_class": type(self.model).__name__, "tokenizer_class": type(self.tokenizer).__name__,
                "device_map": self.options.device_map or "none", "kv_cache": "grows with the text",
                "batch": str(self.options.batch), "rotation": self.rotation}

    def attention(self):
        return str(getattr(self.model.config, "_attn_implementation", ""))

    def ran(self):
        """What was asked for, what is used, and how that is known."""
        places = sorted({str(p.device) for p in self.model.parameters()})
        rows = [("dtype", self.asked, NAMES.get(next(self.model.parameters()).dtype, "other"), "dtype of the parameters")]
        if self.options.attention:
            rows.append(("attention", self.options.attention, self.attention(), "the model's configuration"))
        if self.options.device_map:
            rows.append(("device map", self.options.device_map, "", "parameters are on " + ", ".join(places)))
        return [dict(zip(("what", "asked", "got", "evidence"), row)) for row in rows]

    def live(self):
        return Live([*self.model.parameters(), *self.model.buffers()], lambda: self.cache)

    def watched(self, length, streamer, run):
        """Generates, and notes the most that intermediate tensors take until the first token, while prompts are longer than all before."""
        if length <= self.longest or self.options.compile:
            return run(streamer)
        self.longest, streamer.live = length, self.live()
        with streamer.within:
            run(streamer)
        self.activations = max(self.activations, streamer.live.most)

    def profiled(self, prefix, streamer, run):
        """Generates for each instrument, and with the profiler's last answers the request."""
        deep = Deep(self.model, prefix, self.device, DTYPES[self.asked].itemsize, self.checkpoints)
        self.cache = None
        self.checkpoints.take("before inference", self.sizes())
        run(None)
        self.checkpoints.take("after inference", self.sizes())
        if not self.options.compile:  # a compiled model has no operators to watch
            with torch.inference_mode():
                deep.memory(self.live(), lambda: run(None), lambda: self.cache, pairs)
        deep.calls(lambda: run(None))
        deep.run(streamer, run)
        return {"profile": deep.answer()}

    def generate(self, request):
        batch = "rows" in request
        rows = [Row(r, i, batch, self.tokenizer) for i, r in enumerate(request["rows"] if batch else [request])]
        for row in rows:
            if not row.prompt:
                raise Refusal("empty-prompt", "the prompt has no tokens; transformers needs at least one")
            if len(row.prompt) + row.most > self.window:
                raise Refusal("prompt-too-long", f"the prompt of {len(row.prompt)} tokens and {row.most} to generate do not fit "
                              f"in a context of {self.window}")
        width = max(len(row.prompt) for row in rows)
        ids = torch.tensor([[0] * (width - len(row.prompt)) + row.prompt for row in rows], device=self.device)
        mask = torch.tensor([[0] * (width - len(row.prompt)) + [1] * len(row.prompt) for row in rows], device=self.device)
        heat = request.get("temperature") or (request["rows"][0].get("temperature") if batch else 0)
        settings = {"max_new_tokens": max(row.most for row in rows), "pad_token_id": 0, "use_cache": True}
        reported = {}
        if heat:
            reported["seed"] = random.SystemRandom().randrange(1 << 31)
            torch.manual_seed(reported["seed"])
            settings |= {"do_sample": True, "temperature": heat, "top_k": 0, "top_p": 1.0}
        else:
            settings["do_sample"] = False
        # generate() fills in from the model's own what is not set here, such as penalties and the tokens that end a text.
        self.model.generation_config = transformers.GenerationConfig(**settings)
        def run(streamer):
            self.cache = None  # frees that of the request before
            self.cache = self.new_cache()
            with torch.inference_mode():
                self.model.generate(input_ids=ids, attention_mask=mask, past_key_values=self.cache, streamer=streamer,
                                    stopping_criteria=transformers.StoppingCriteriaList([Stop(rows, self.wire)]))

        begin = time.monotonic_ns()
        streamer, profile = Streamer(rows, self.eos, self.wire), {}
        if request.get("profile"):
            profile = self.profiled(request["profile"], streamer, run)
        else:
            self.watched(width, streamer, run)
        reported["total_ms"] = (time.monotonic_ns() - begin) / 1e6
        results = [{"finish": row.finish or "length", "prompt_ids": row.prompt, "generated": len(row.ids), "reported": reported}
                   for row in rows]
        if self.wire.stopped():
            raise Refusal("cancelled", "cancelled")
        self.wire.answer("done", held=self.sizes(), **profile, **({"rows": results} if batch else results[0]))

    def new_cache(self):
        if VERSION >= (4, 56):
            return transformers.DynamicCache(config=self.model.config)
        return transformers.DynamicCache()

    def score(self, request):
        ids, forced = request["prompt_ids"], request["ids"]
        keep = len(forced) + 1
        settings = {"use_cache": False}
        if "logits_to_keep" in inspect.signature(self.model.forward).parameters:
            settings["logits_to_keep"] = keep
        with torch.inference_mode():
            logits = self.model(input_ids=torch.tensor([ids + forced], device=self.device), **settings).logits[0, -keep:-1]
        for id, row in zip(forced, logits):
            scores = torch.log_softmax(row.double(), -1)
            best = torch.topk(scores, min(request.get("top") or 0, len(scores)))
            top = [{"token": i, "logprob": v} for v, i in zip(best.values.tolist(), best.indices.tolist()) if v > -1e30]
            own = scores[id].item()
            self.wire.answer("token", token=id, top=top, **({"logprob": own} if own > -1e30 else {}))
            if self.wire.stopped():
                raise Refusal("cancelled", "cancelled")
        self.wire.answer("done")


def hello(options, request):
    device = {"class": "cpu", "asked": "cpu", "detail": {}}
    if options.device != "cpu":
        device["asked"] = "gpu"
        there = {"cuda": torch.cuda.is_available, "mps": torch.backends.mps.is_available}[options.device]()
        if there:
            device["class"], device["detail"]["backend"] = "gpu", options.device
            device["name"] = torch.cuda.get_device_name() if options.device == "cuda" else "Apple GPU"
        else:
            options.device = "cpu"
    device["detail"]["torch_device"] = options.device
    return {"protocol": 1, "name": "transformers", "version": f"{transformers.__version__} (torch {torch.__version__})",
            "device": device, "caps": {"ids": True, "exact": True, "ignore_eos": True, "scores": True, "profiles": True},
            "formats": ["hf"],
            "clock": "monotonic" if request.get("clock") == "monotonic" else "", "policy": {"prompt_cache": "off"},
            "parts": {"torch": torch.__version__, "transformers": transformers.__version__, "python": sys.version.split()[0]}}


def free():
    """Returns memory to the system, which Python and the C library would keep."""
    gc.collect()
    if torch.cuda.is_initialized():
        torch.cuda.empty_cache()
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda", "mps"])
    parser.add_argument("--device-map")
    parser.add_argument("--attention")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--profile", action="store_true", help="a profile will be asked for")
    options, wire, model = parser.parse_args(), Wire(), None
    while True:
        request = wire.requests.get()
        wire.current = request
        try:
            if request["op"] == "hello":
                wire.answer("done", **hello(options, request))
            elif request["op"] == "load":
                model = Model(options, request, wire)
                wire.answer("done", context=model.window if model.window < 1 << 30 else 0, policy=model.policy(), ran=model.ran(),
                            held=model.sizes(), weights=sameness(request["model"]["path"], model.asked))
            elif request["op"] == "unload":
                model = None
                free()
                wire.answer("done")
            else:
                getattr(model, request["op"])(request)
        except Refusal as e:
            wire.answer("error", **{"class": e.kind, "message": str(e)})
        except Exception as e:  # noqa: BLE001 - whatever a library raises is the answer
            traceback.print_exc()
            text = f"{type(e).__name__}: {e}".strip().splitlines()[0][:400]
            memory = isinstance(e, MemoryError) or "out of memory" in text.lower() or "can't allocate memory" in text.lower()
            wire.answer("error", **{"class": "oom" if memory else "failed", "message": text})


main()
