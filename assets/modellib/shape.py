"""The shape of a model and the variants of a library."""

import json
import math

import names


class Refused(Exception):
    """An error for the user, with an exit code."""

    def __init__(self, text, code=1):
        super().__init__(text)
        self.code = code


NO_PACKAGES, NO_EMCC, BAD_SHAPE = 3, 4, 5  # exit codes


class BadShape(Refused):
    """A shape that no library can be compiled for."""

    def __init__(self, text):
        super().__init__(f"shape: {text}", BAD_SHAPE)


WHOLE = {  # field: maximum
    "hidden_size": 1 << 16,
    "intermediate_size": 1 << 18,
    "num_hidden_layers": 1 << 10,
    "num_attention_heads": 1 << 10,
    "num_key_value_heads": 1 << 10,
    "head_dim": 1 << 9,
    "vocab_size": 1 << 20,
    "context_window_size": 1 << 20,
    "prefill_chunk_size": 1 << 14,
}
NUMBERS = ("rope_theta", "rms_norm_eps")
FLAGS = ("attention_bias", "tie_word_embeddings")
CHOICES = {"model_type": tuple(names.OF), "dtype": ("float32", "float16")}
FIELDS = {*CHOICES, *NUMBERS, *FLAGS, "sliding_window_size", *WHOLE}
OPTIONAL = {  # field: what its absence means
    "rope_factors": (), "rope_attention_factor": 0.0, "rope_local_theta": 0.0, "rotary_dim": 0,
    "local_layers": (), "qk_norm": False, "post_norms": False, "gelu": False, "embedding_scale": 0.0,
    "query_pre_attn_scalar": 0.0, "attn_logit_softcapping": 0.0, "final_logit_softcapping": 0.0,
    "weight_types": {}, "quantization": "", "kv_dtype": "",
}

TYPES = ("plain", "f32", "f16", "q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "q4_k", "q5_k", "q6_k")  # those of weights.py
KERNELS = ("software", "gpu", "mlc")
SORTS = ("partial", "full")


def load(path):
    """Reads and checks the shape in a file."""
    try:
        with open(path, encoding="utf-8") as file:
            shape = json.load(file)
    except (OSError, ValueError) as error:
        raise BadShape(f"{error}") from error
    if not isinstance(shape, dict):
        raise BadShape("not a JSON object")
    for field in sorted(FIELDS - shape.keys()):
        raise BadShape(f"{field} is missing")
    for field in sorted(shape.keys() - FIELDS - OPTIONAL.keys()):
        raise BadShape(f"unknown field {field}")
    for field, known in CHOICES.items():
        if shape[field] not in known:
            raise BadShape(f"{field} {shape[field]!r} is not supported, only {' and '.join(map(repr, known))}")
    for field, absent in OPTIONAL.items():
        shape[field] = shape.get(field) or absent
    check_numbers(shape)
    check_lists(shape)
    check_types(shape)
    return shape


def stated(shape):
    """The shape without the fields that have no effect."""
    return {field: value for field, value in shape.items() if value or field not in OPTIONAL}


def check_numbers(shape):
    for field, most in WHOLE.items():
        if not whole(shape[field]) or not 0 < shape[field] <= most:
            raise BadShape(f"{field} must be a whole number from 1 to {most}, not {shape[field]!r}")
    for field in NUMBERS:
        if not positive(shape[field]):
            raise BadShape(f"{field} must be a number above 0, not {shape[field]!r}")
        shape[field] = float(shape[field])
    for field, absent in OPTIONAL.items():
        if type(absent) is float and shape[field] != 0:
            if not positive(shape[field]):
                raise BadShape(f"{field} must be a number above 0, not {shape[field]!r}")
            shape[field] = float(shape[field])
    for field in (*FLAGS, *(field for field, absent in OPTIONAL.items() if type(absent) is bool)):
        if type(shape[field]) is not bool:
            raise BadShape(f"{field} must be true or false, not {shape[field]!r}")
    if shape["model_type"] == "qwen2" and not shape["attention_bias"]:
        raise BadShape("attention_bias must be true for qwen2")
    if shape["num_attention_heads"] % shape["num_key_value_heads"]:
        raise BadShape("num_attention_heads must be a multiple of num_key_value_heads")
    if shape["head_dim"] % 2:
        raise BadShape("head_dim must be even")
    if not whole(shape["rotary_dim"]) or shape["rotary_dim"] % 2 or not 0 <= shape["rotary_dim"] <= shape["head_dim"]:
        raise BadShape(f"rotary_dim must be an even number up to head_dim, not {shape['rotary_dim']!r}")
    if shape["dtype"] == "float16" and shape["hidden_size"] % 2:
        raise BadShape("hidden_size must be even for float16, whose buffers must fill whole words")
    if shape["kv_dtype"] not in ("", *CHOICES["dtype"]):
        raise BadShape(f"kv_dtype {shape['kv_dtype']!r} is not supported")
    if shape["prefill_chunk_size"] > shape["context_window_size"]:
        raise BadShape("prefill_chunk_size must not exceed context_window_size")


def cache_dtype(shape):
    """The dtype of the KV cache, and of what attention reads and writes."""
    return shape["kv_dtype"] or shape["dtype"]


def check_lists(shape):
    window, factors, local = shape["sliding_window_size"], shape["rope_factors"], shape["local_layers"]
    if not whole(window) or not 0 <= window < shape["context_window_size"]:
        raise BadShape(f"sliding_window_size must be a whole number below context_window_size, not {window!r}")
    if not isinstance(factors, list | tuple) or len(factors) not in (0, (shape["rotary_dim"] or shape["head_dim"]) // 2):
        raise BadShape("rope_factors must be a list of half as many numbers as a head rotates")
    for factor in factors:
        if not positive(factor):
            raise BadShape(f"rope_factors must be numbers above 0, not {factor!r}")
    shape["rope_factors"] = [float(factor) for factor in factors]
    if not isinstance(local, list | tuple) or not all(whole(i) and 0 <= i < shape["num_hidden_layers"] for i in local):
        raise BadShape(f"local_layers must be a list of layers, not {local!r}")


def check_types(shape):
    """weight_types has the types of a matrix by name: one, or one for each of the matrices that it joins."""
    types = shape["weight_types"]
    if not isinstance(types, dict) or not all(
            isinstance(of, list) and 0 < len(of) <= 3 and all(kind in TYPES for kind in of) for of in types.values()):
        raise BadShape(f"weight_types must be lists of {', '.join(TYPES)}")


def check_mlc(shape):
    """Refuses what MLC's graphs or TVM's cache lack."""
    lacks = {
        "layers with a window": shape["sliding_window_size"],
        "two bases of rotation": shape["rope_local_theta"],
        "soft caps of scores": shape["attn_logit_softcapping"],
        "matrices that are neither plain nor Q4_0": any({*of} not in ({"plain"}, {"q4_0"}) for of in shape["weight_types"].values()),
        "KV cache of another dtype": cache_dtype(shape) != shape["dtype"],
        "this scaling of rotations": scaling(shape) is None,
    }
    for what, has in lacks.items():
        if has:
            raise Refused(f"--kernels mlc has no {what}; --kernels gpu has", BAD_SHAPE)


def scaling(shape):
    """The factor of positions, and TVM's rope_scaling, that have the effect of rope_factors; None if there are none. LongRoPE has
    neither: TVM chooses its factors by the length of a prefill chunk."""
    factors = shape["rope_factors"]
    if shape["rope_attention_factor"] not in (0, 1):
        return None
    if not factors or max(factors) == min(factors):
        return 1 / max(factors, default=1), {}
    most, turned = max(factors), (shape["rotary_dim"] or shape["head_dim"]) // 2
    for original in (2**n for n in range(4, 18)):  # Llama 3's; of its other numbers no model has others
        turns = [original / (2 * math.pi * shape["rope_theta"] ** (i / turned)) for i in range(turned)]
        smooth = [min(1, max(0, (t - 1) / 3)) for t in turns]
        if all(math.isclose(f * ((1 - s) / most + s), 1, rel_tol=1e-4) for f, s in zip(factors, smooth)):
            return 1, {"rope_type": "llama3", "factor": most, "low_freq_factor": 1, "high_freq_factor": 4,
                       "original_max_position_embeddings": original}
    return None


def whole(value):
    return type(value) is int  # a bool is an int to isinstance


def positive(value):
    return type(value) in (int, float) and 0 < value < 1e12


def canonical(shape, variant):
    """Shape and variant as text that does not depend on the order of their fields."""
    return json.dumps([shape, variant], sort_keys=True)
