#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# Every model that torchvision lists, and some of transformers: its printed text is read, printed
# again as it was, and loads its weights strictly (make models).
#   printed.py BUILD [NAME...]
# The models are made on PyTorch's device meta, and their files have zeros, of which most are holes
# in the file, except for the first and the last element of each tensor: so all of them take half a
# minute, and those with 2.6 GB of weights no space. networks.py compares what models compute.
# Ends with 77, and says SKIP, if PyTorch or torchvision is not installed.
import json
import os
import struct
import subprocess
import sys
import tempfile
import warnings

try:
    import torch
    import torchvision
    from torchvision.models import regnet
except ImportError as missing:
    print("SKIP: %s" % missing)
    sys.exit(77)

DTYPES = {
    torch.float32: ("F32", "<f", 4),
    torch.float64: ("F64", "<d", 8),
    torch.int64: ("I64", "<q", 8),
    torch.bool: ("BOOL", "<?", 1),
}

# The sizes of its stages are computed with tensors, which need values.
stages = regnet.BlockParams.from_init_params


def with_values(*arguments, **options):
    with torch.device("cpu"):
        return stages(*arguments, **options)


regnet.BlockParams.from_init_params = with_values


def vision(name):
    options = {}
    package = torchvision.models.get_model_builder(name).__module__
    if ".detection" in package or ".segmentation" in package:
        options["weights_backbone"] = None
    with torch.device("meta"):
        return torchvision.models.get_model(name, weights=None, **options)


def language(kind, config):
    def make(name):
        import transformers

        with torch.device("meta"):
            return getattr(transformers, kind)(getattr(transformers, config)())

    return make


MODELS = {name: vision for name in torchvision.models.list_models()}
MODELS.update(
    bert=language("BertForSequenceClassification", "BertConfig"),
    distilbert=language("DistilBertForSequenceClassification", "DistilBertConfig"),
    gpt2=language("GPT2LMHeadModel", "GPT2Config"),
    roberta=language("RobertaForMaskedLM", "RobertaConfig"),
    t5=language("T5ForConditionalGeneration", "T5Config"),
    vit=language("ViTForImageClassification", "ViTConfig"),
    whisper=language("WhisperForConditionalGeneration", "WhisperConfig"),
)

# What is not read yet.
KNOWN = set()


def write(state, path):
    """A safetensors file; of tied tensors, which share storage, the first name."""
    header, marks, end = {}, [], 0
    kept = {}  # by storage
    for name, t in state.items():
        dtype, form, size = DTYPES[t.dtype]
        if kept.setdefault(id(t.untyped_storage()), t) is not t and t.numel() > 0:
            continue
        header[name] = {
            "dtype": dtype,
            "shape": list(t.shape),
            "data_offsets": [end, end + size * t.numel()],
        }
        if t.numel() > 0:
            number = form == "<?" or (len(marks) % 99 + 1) * (0.5 if form in "<f<d" else 1)
            marks.append((end, struct.pack(form, number)))
            marks.append((end + size * (t.numel() - 1), struct.pack(form, number)))
        end += size * t.numel()
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        start = file.tell()
        for place, data in marks:
            file.seek(start + place)
            file.write(data)
        file.truncate(start + end)


def compared(name, build, folder):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        net = MODELS[name](name)
    text, weights = os.path.join(folder, "model.txt"), os.path.join(folder, "model.safetensors")
    with open(text, "w", encoding="utf-8") as file:
        file.write(str(net))
    write(net.state_dict(keep_vars=True), weights)
    done = subprocess.run(
        [os.path.join(build, "run"), os.path.join(build, "tests/models/printed"), text, weights],
        capture_output=True,
        text=True,
        timeout=120,
    )
    return done.stderr.strip() or (
        "" if done.returncode == 0 else "ended with %d" % done.returncode
    )


def main():
    build, names = os.path.abspath(sys.argv[1]), sys.argv[2:] or list(MODELS)
    failed = ran = known = 0
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            try:
                trouble = compared(name, build, folder)
            except ImportError as missing:
                print("SKIP: %s: %s" % (name, missing))
                continue
        if trouble and name in KNOWN:
            known += 1
            print("known: %s: %s" % (name, trouble.split("\n")[0]), flush=True)
            continue
        if name in KNOWN:
            trouble = "works; remove it from KNOWN"
        ran += trouble == ""
        failed += trouble != ""
        if trouble:
            print("FAILED: %s: %s" % (name, trouble), flush=True)
    print(
        "%d printed models read, printed again and loaded; %d failed; %d known not to be read"
        % (ran, failed, known)
    )
    sys.exit(failed > 0)


main()
