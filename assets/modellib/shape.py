"""The shape of a model: the numbers that a library is compiled for."""

import json


class Refused(Exception):
    """A shape or a tool that the compiler cannot work with; its first line is for the user, code is the exit code."""

    def __init__(self, text, code=1):
        super().__init__(text)
        self.code = code


NO_PACKAGES, NO_EMCC = 3, 4  # exit codes of what a set-up puts right


WHOLE = {  # field: the greatest value that makes sense
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
FIELDS = {"model_type", "dtype", "rope_theta", "rms_norm_eps", "tie_word_embeddings", *WHOLE}


def load(path):
    """The shape in the file at path, every field checked."""
    try:
        with open(path, encoding="utf-8") as file:
            shape = json.load(file)
    except (OSError, ValueError) as error:
        raise Refused(f"shape file: {error}") from error
    if not isinstance(shape, dict):
        raise Refused("shape file: not a JSON object")
    for field in sorted(FIELDS - shape.keys()):
        raise Refused(f"shape: {field} is missing")
    for field in sorted(shape.keys() - FIELDS):
        raise Refused(f"shape: unknown field {field}")
    if shape["model_type"] != "llama":
        raise Refused(f"shape: model_type {shape['model_type']!r} is not supported, only 'llama'")
    if shape["dtype"] != "float32":
        raise Refused(f"shape: dtype {shape['dtype']!r} is not supported, only 'float32'")
    check_numbers(shape)
    return shape


def check_numbers(shape):
    for field, most in WHOLE.items():
        if type(shape[field]) is not int or not 0 < shape[field] <= most:
            raise Refused(f"shape: {field} must be a whole number from 1 to {most}, not {shape[field]!r}")
    for field in ("rope_theta", "rms_norm_eps"):
        if type(shape[field]) not in (int, float) or not 0 < shape[field] < 1e12:
            raise Refused(f"shape: {field} must be a number above 0, not {shape[field]!r}")
        shape[field] = float(shape[field])
    if type(shape["tie_word_embeddings"]) is not bool:
        raise Refused(f"shape: tie_word_embeddings must be true or false, not {shape['tie_word_embeddings']!r}")
    if shape["num_attention_heads"] % shape["num_key_value_heads"]:
        raise Refused("shape: num_attention_heads must be a multiple of num_key_value_heads")
    if shape["head_dim"] % 2:
        raise Refused("shape: head_dim must be even")
    if shape["prefill_chunk_size"] > shape["context_window_size"]:
        raise Refused("shape: prefill_chunk_size must not exceed context_window_size")


def canonical(shape):
    """The shape as text that does not depend on the order of its fields."""
    return json.dumps(shape, sort_keys=True)
