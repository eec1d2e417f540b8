"""The shape of a model and the variants of a library."""

import json


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
CHOICES = {"model_type": ("llama", "qwen2"), "dtype": ("float32", "float16")}
FIELDS = {*CHOICES, *NUMBERS, *FLAGS, "sliding_window_size", *WHOLE}
OPTIONAL = {"rope_factors"}  # absent or empty: none

KERNELS = ("software", "gpu")
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
    for field in sorted(shape.keys() - FIELDS - OPTIONAL):
        raise BadShape(f"unknown field {field}")
    for field, known in CHOICES.items():
        if shape[field] not in known:
            raise BadShape(f"{field} {shape[field]!r} is not supported, only {' and '.join(map(repr, known))}")
    check_numbers(shape)
    check_window_and_factors(shape)
    return shape


def check_numbers(shape):
    for field, most in WHOLE.items():
        if not whole(shape[field]) or not 0 < shape[field] <= most:
            raise BadShape(f"{field} must be a whole number from 1 to {most}, not {shape[field]!r}")
    for field in NUMBERS:
        if not positive(shape[field]):
            raise BadShape(f"{field} must be a number above 0, not {shape[field]!r}")
        shape[field] = float(shape[field])
    for field in FLAGS:
        if type(shape[field]) is not bool:
            raise BadShape(f"{field} must be true or false, not {shape[field]!r}")
    if shape["model_type"] == "qwen2" and not shape["attention_bias"]:
        raise BadShape("attention_bias must be true for qwen2")
    if shape["num_attention_heads"] % shape["num_key_value_heads"]:
        raise BadShape("num_attention_heads must be a multiple of num_key_value_heads")
    if shape["head_dim"] % 2:
        raise BadShape("head_dim must be even")
    if shape["dtype"] == "float16" and shape["hidden_size"] % 2:
        raise BadShape("hidden_size must be even for float16, whose buffers must fill whole words")
    if shape["prefill_chunk_size"] > shape["context_window_size"]:
        raise BadShape("prefill_chunk_size must not exceed context_window_size")


def check_window_and_factors(shape):
    window, factors = shape["sliding_window_size"], shape.setdefault("rope_factors", []) or []
    if not whole(window) or not 0 <= window < shape["context_window_size"]:
        raise BadShape(f"sliding_window_size must be a whole number below context_window_size, not {window!r}")
    if not isinstance(factors, list) or len(factors) not in (0, shape["head_dim"] // 2):
        raise BadShape("rope_factors must be a list of half as many numbers as head_dim")
    for factor in factors:
        if not positive(factor):
            raise BadShape(f"rope_factors must be numbers above 0, not {factor!r}")
    shape["rope_factors"] = [float(factor) for factor in factors]


def whole(value):
    return type(value) is int  # a bool is an int to isinstance


def positive(value):
    return type(value) in (int, float) and 0 < value < 1e12


def canonical(shape, variant):
    """Shape and variant as text that does not depend on the order of their fields."""
    return json.dumps([shape, variant], sort_keys=True)
