#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# Extreme values of options, and a verdict on each: what a call of PyTorch with it does. Each call
# runs in its own process, with bounded memory and time. The verdicts:
#
#   taken SHAPE    it returned; the shape of the first result
#   refused        it raised an exception
#   memory         no memory for it
#   died           the process crashed or ran for longer than the limit
import os
import resource
import signal
import sys

import torch

torch.set_num_threads(1)

INTS = ["0", "-1", "2147483648", "4611686018427387904", "-9223372036854775808"]
FLOATS = ["0.0", "-1.0", "nan", "inf", "-inf", "1e+308"]
EXTREMES = {
    "int": INTS,
    "ints": INTS + ["()"],
    "float": FLOATS,
    "floats": FLOATS + ["()"],
    "text": ["''"],
    "value": ["0", "-1", "2147483648", "4611686018427387904", "nan", "()", "''"],
    "bool": [],
    "dtype": [],
}
SECONDS, BYTES = 10, 768 << 20


def used():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[0]) * resource.getpagesize()


def shape(y):
    while isinstance(y, (tuple, list)) and len(y) > 0:
        y = y[0]
    if not isinstance(y, torch.Tensor):
        return "-"
    return ",".join(str(n) for n in y.shape) if y.dim() else "-"


def verdict(call):
    """What came of call(), a function without arguments."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        limit = used() + BYTES
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        signal.alarm(SECONDS)
        try:
            said = "taken " + shape(call())
        except MemoryError:
            said = "memory"
        except Exception as e:
            text = str(e)
            if os.environ.get("OPTIONS_VERBOSE"):
                print("#", type(e).__name__, text[:200].replace("\n", " "))
                sys.stdout.flush()
            short = "allocate memory" in text or "enough memory" in text or "bad_alloc" in text
            said = "memory" if short else "refused"
        os.write(write, said.encode())
        os._exit(0)
    os.close(write)
    said = os.read(read, 1000).decode()
    os.close(read)
    os.waitpid(child, 0)
    return said or "died"
