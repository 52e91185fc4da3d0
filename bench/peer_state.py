# SPDX-License-Identifier: MIT
"""The reference library for safetensors of bench/state: peer_state.py FOLDER ROUNDS.

Reads the files that bench/state left in FOLDER and prints lines `case action seconds`, each the
least of the rounds.
"""

import os
import sys
import time

import torch
from safetensors.torch import load_file, save_file

folder, rounds = sys.argv[1], int(sys.argv[2])
torch.set_num_threads(1)


def save(tensors, path):
    save_file(tensors, path)
    file = os.open(path, os.O_RDONLY)
    os.fsync(file)
    os.close(file)


def least(work):
    best = 1e30
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best


for name, count in (("many", 10000), ("large", 20)):
    path = os.path.join(folder, f"bench-{name}.safetensors")
    other = os.path.join(folder, f"bench-{name}-peer.safetensors")
    tensors = {key: value.clone() for key, value in load_file(path).items()}
    assert len(tensors) == count and all(
        float(t[-1]) == int(k.split(".")[2]) for k, t in tensors.items()
    )
    print(name, "save", least(lambda: save(tensors, other)))
    print(name, "load", least(lambda: {k: v.clone() for k, v in load_file(other).items()}))
    print(name, "map", least(lambda: load_file(other)))
    os.remove(other)
