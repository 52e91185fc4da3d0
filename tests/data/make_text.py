#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# make_text.py FOLDER: FOLDER/files/text.txt, a text in several languages; a small vocabulary for it
# below FOLDER/files/bpe, made by the package tokenizers; and bpe_ids.h, what GPT2Tokenizer of
# transformers makes of the text.
#
# make_text.py --check FOLDER TEXT: prints the tokens of a text by the vocabulary, for comparison.
import os
import sys
import textwrap

import tokenizers
import transformers

PARTS = [
    "The quick brown fox jumps over the lazy dog; it doesn't mind, we've seen it, they'll say I'm "
    "right. DON'T! 's 're 've\n",
    "Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich.\n",
    "Съешь же ещё этих мягких французских булок, "
    "да выпей чаю.\n",
    "いろはにほへと ちりぬるを　わかよたれそ 常ならむ\n",
    "我能吞下玻璃而不伤身体。 ١٢٣٤ ⅷ ½ ²³\n",
    "نص حكيم له سر قاطع وذو شأن عظيم\n",
    "हिन्दी में परीक्षण\tतथा  "
    "\u00a0\u2003 spaces   between\n\n\n\tand tabs\t \n",
    "def f(x):\n    return x**2 + 1  # 100% of 3.14159\n\r\n",
    "🙂🙃👩‍👩‍👧 e\u0301 ﬀ \u200b\u200d\ufeff \x00\x01\x7f\n",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa      a \n",
    "before<|endoftext|>after <|endoftext|>  \n <|endoftext|x>\u1c89\U0001f1e6\U000105c0\n  ",
]


def main():
    if sys.argv[1] == "--check":
        folder, path = sys.argv[2:]
        with open(path, encoding="utf-8", newline="") as file:
            print(*tokens(folder, file.read()))
        return
    top = sys.argv[1]
    folder = os.path.join(top, "files/bpe")
    text = "".join(PARTS)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(top, "files/text.txt"), "w", encoding="utf-8", newline="") as file:
        file.write(text)
    trainer = tokenizers.ByteLevelBPETokenizer()
    trainer.train_from_iterator([text] * 3, vocab_size=420, special_tokens=["<|endoftext|>"],
                                show_progress=False)
    trainer.save_model(folder)
    ids = tokens(folder, text)
    with open(os.path.join(top, "bpe_ids.h"), "w", encoding="utf-8") as out:
        out.write("/* SPDX-License-Identifier: MIT\n *\n * Written by make_text.py: what "
                  f"GPT2Tokenizer of transformers {transformers.__version__} makes of "
                  "files/text.txt. */\n\nstatic const int64_t bpe_ids[] = {\n")
        out.write(textwrap.fill(", ".join(map(str, ids)), 96, initial_indent="    ",
                                subsequent_indent="    ") + "\n};\n")


def tokens(folder, text):
    tokenizer = transformers.GPT2Tokenizer(os.path.join(folder, "vocab.json"),
                                           os.path.join(folder, "merges.txt"))
    return tokenizer(text)["input_ids"]


main()
