"""The names that MLC gives the parameters of its models, by architecture."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Names:
    root: str = "model"
    embedding: str = "embed_tokens"
    layers: str = "layers"
    attention: str = "self_attn"
    queries: tuple = ("qkv_proj",)  # one fused matrix, or one each for queries, keys and values
    out: str = "o_proj"
    first_norm: str = "input_layernorm"
    head: str = "lm_head"


OF = {
    "llama": Names(),
    "qwen2": Names(queries=("c_attn",)),
    "qwen3": Names(queries=("c_attn",)),
    "gemma2": Names(),
    "gemma3": Names(root="language_model.model", queries=("q_proj", "k_proj", "v_proj"), head="language_model.lm_head"),
    "phi3": Names(root="transformer", embedding="embd", layers="h", attention="mixer", out="out_proj", first_norm="ln"),
}
