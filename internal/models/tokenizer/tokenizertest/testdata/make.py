"""Makes the vocabularies and the golden tokens of this folder, with PyPI's tokenizers and sentencepiece.

    python make.py vocabularies    bpe.json and spm.json, trained on the sources of Python's own library
    go test ./internal/models/mlc/vocab -run TokenizerFile -artifacts -outputdir /tmp/out
    python make.py golden DIR      golden.json: what tokenizers makes of texts.json with the *.tokenizer.json in DIR,
                                   for SentencePiece compared with sentencepiece itself where spm.model is at hand
"""
import glob, hashlib, json, os, sys

import sentencepiece
import tokenizers

HERE = os.path.dirname(os.path.abspath(__file__))
SPECIAL = ["<|endoftext|>", "<|im_end|>"]
# Wider than any pre-tokenizer's own rule, so that there are merges which each of them keeps from some text.
WORD = r"[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+| ?\p{N}+| ?[^\s\p{L}\p{N}]+[\r\n]*|'\p{L}{1,2}|\s+(?!\S)|\s+"


def save(name, content):
    with open(os.path.join(HERE, name), "w", encoding="utf-8") as f:
        json.dump(content, f, ensure_ascii=False, separators=(",", ":"))
        f.write("\n")


def lines():
    library = os.path.dirname(os.__file__)
    out = []
    for path in ["argparse.py", "ast.py", "difflib.py", "pydoc.py", "textwrap.py"]:
        with open(os.path.join(library, path), encoding="utf-8") as f:
            out += f.read().split("\n")
    out += [f"{n}, {n * 37} and {n * 1234567}" for n in range(200)] + ["it's IT'S we'll WE'LL they've", "x\t\ty  z\r\n"] * 40
    return out + ["naïve café, Straße, Привет мир, γειά σου, שלום עולם, مرحبا, 中文测试, 日本語, 한국어, 😀 👍🏽"] * 40


def vocabularies():
    t = tokenizers.Tokenizer(tokenizers.models.BPE())
    split = tokenizers.pre_tokenizers.Split(tokenizers.Regex(WORD), "isolated")
    level = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    t.pre_tokenizer = tokenizers.pre_tokenizers.Sequence([split, level])
    t.train_from_iterator(["\n".join(lines())], tokenizers.trainers.BpeTrainer(
        vocab_size=900, initial_alphabet=level.alphabet(), show_progress=False))
    model = json.loads(t.to_str())["model"]
    whole = ["Ġunreachable", "Zürich"]  # words that no merge reaches, for tokenizers that take whole words
    tokens = sorted(model["vocab"], key=model["vocab"].get) + whole + SPECIAL
    save("bpe.json", {"tokens": tokens, "merges": [" ".join(m) if isinstance(m, list) else m for m in model["merges"]]})
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([l for l in lines() if l]), model_prefix=os.path.join(HERE, "spm"), vocab_size=1000,
        model_type="bpe", byte_fallback=True, normalization_rule_name="identity", remove_extra_whitespaces=False,
        split_digits=True, allow_whitespace_only_pieces=True, character_coverage=0.999, minloglevel=2)
    p = sentencepiece.SentencePieceProcessor(model_file=os.path.join(HERE, "spm.model"))
    ids = range(p.vocab_size())
    kind = lambda i: 6 if p.is_byte(i) else 3 if p.is_control(i) else 2 if p.is_unknown(i) else 1
    save("spm.json", {"tokens": p.id_to_piece(list(ids)), "types": [kind(i) for i in ids], "scores": p.get_score(list(ids))})


def golden(folder):
    with open(os.path.join(HERE, "texts.json"), encoding="utf-8") as f:
        texts = json.load(f)
    model = os.path.join(HERE, "spm.model")
    out = {}
    for path in sorted(glob.glob(os.path.join(folder, "**", "*.tokenizer.json"), recursive=True)):
        kind = os.path.basename(path).removesuffix(".tokenizer.json")
        with open(path, "rb") as f:
            file = f.read()
        t = tokenizers.Tokenizer.from_str(file.decode())
        ids = [t.encode(text).ids for text in texts]
        if kind == "spm" and os.path.exists(model):
            p = sentencepiece.SentencePieceProcessor(model_file=model)
            for text, got in zip(texts, ids):
                assert "<s>" in text or "</s>" in text or "<unk>" in text or got == [1] + p.encode(text), (text, got)
        out[kind] = {"sha256": hashlib.sha256(file).hexdigest(), "ids": ids}
    save("golden.json", out)


if sys.argv[1] == "vocabularies":
    vocabularies()
else:
    golden(sys.argv[2])
