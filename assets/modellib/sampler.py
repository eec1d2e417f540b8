"""The functions of a library that lead from logits to the next token; they need no weights."""

from tvm import tirx
from tvm.relax.frontend import nn

import nucleus
import sampling
import sorting
from graph import call, edit
from sampling import ROWS


class Sampler:
    """Mixed into a model, whose shape and variant it reads."""

    def softmax_with_temperature(self, logits, temperature):
        vocab, n = self.shape["vocab_size"], logits.shape[0]
        func, groups = sampling.group_softmax(vocab)
        peak, total = call(func, [logits, temperature], (n, groups), (n, groups))
        return call(sampling.finish_softmax(vocab), [logits, temperature, peak, total], (n, 1, vocab))

    def argsort_probs(self, probs):
        vocab, n = self.shape["vocab_size"], probs.shape[0]
        out = (n, vocab), ((n, vocab), "int32")
        if vocab <= sorting.SMALL:
            return call(sorting.rank_tokens(vocab), [probs], *out)
        if self.variant["sort"] == "full":
            return self._sort(probs, out)
        groups, head = ((n, sorting.GROUPS), ((n, sorting.GROUPS), "int32")), ((n, sorting.HEAD), ((n, sorting.HEAD), "int32"))
        peaks = call(sorting.find_peaks(vocab), [probs], *groups)
        chosen = call(sorting.choose_groups(), [*peaks], *head)
        first = call(sorting.rank_head(vocab), [probs, *chosen], *head)
        return call(sorting.place_tokens(vocab), [probs, *first], *out)

    def _sort(self, probs, out):
        vocab = self.shape["vocab_size"]
        probs, tokens = call(sorting.sort_pass(vocab, True), [probs], *out)
        again = sorting.sort_pass(vocab, False)
        for length in sorting.sort_lengths(vocab, sorting.fan_of(vocab)):
            probs, tokens = call(again, [probs, tokens, tirx.IntImm("int64", length)], *out)
        return probs, tokens

    def sample_with_top_p(self, sorted_probs, sorted_indices, uniform_samples, sample_indices, top_p):
        vocab = self.shape["vocab_size"]
        # A thread of a GPU is slow: there even what is wholly sorted is walked no further than the head, and searched together.
        gpu = self.variant["kernels"] != "software"
        func = nucleus.nucleus(vocab, sorting.head_of(vocab, "partial" if gpu else self.variant["sort"]), gpu)
        args = [sorted_probs, sorted_indices, uniform_samples, sample_indices, top_p]
        return call(func, args, ((uniform_samples.shape[0],), "int32"))

    def apply_logit_bias_inplace(self, logits, pos2seq_id, token_ids, logit_bias):
        return edit(sampling.add_bias(self.shape["vocab_size"]), [logits, pos2seq_id, token_ids, logit_bias])

    def apply_penalty_inplace(self, logits, seq_ids, pos2seq_id, token_ids, token_cnt, penalties):
        return edit(sampling.punish(self.shape["vocab_size"]), [logits, seq_ids, pos2seq_id, token_ids, token_cnt, penalties])

    def apply_bitmask_inplace(self, logits, seq_ids, bitmask):
        return edit(sampling.mask(self.shape["vocab_size"]), [logits, seq_ids, bitmask])

    def sampling_spec(self):
        """The arguments of the functions above."""
        vocab, tensor, bare = self.shape["vocab_size"], nn.spec.Tensor, {"$": {"param_mode": "none", "effect_mode": "none"}}
        logits, sequences, tokens = tensor([ROWS, vocab], "float32"), tensor([ROWS], "int32"), tensor(["count"], "int32")
        return {
            "softmax_with_temperature": {
                "logits": tensor([ROWS, 1, vocab], "float32"), "temperature": tensor([ROWS], "float32"), **bare},
            "argsort_probs": {"probs": tensor([ROWS, vocab], "float32"), **bare},
            "sample_with_top_p": {
                "sorted_probs": tensor([ROWS, vocab], "float32"), "sorted_indices": tensor([ROWS, vocab], "int32"),
                "uniform_samples": tensor([ROWS], "float32"), "sample_indices": tensor([ROWS], "int32"),
                "top_p": tensor([ROWS], "float32"), **bare},
            "apply_logit_bias_inplace": {
                "logits": logits, "pos2seq_id": tokens, "token_ids": tokens, "logit_bias": tensor(["count"], "float32"), **bare},
            "apply_penalty_inplace": {
                "logits": logits, "seq_ids": sequences, "pos2seq_id": tokens, "token_ids": tokens, "token_cnt": tokens,
                "penalties": tensor([ROWS, 3], "float32"), **bare},
            "apply_bitmask_inplace": {
                "logits": logits, "seq_ids": sequences, "bitmask": tensor([ROWS, (vocab + 31) // 32], "int32"), **bare},
        }
