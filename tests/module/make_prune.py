# SPDX-License-Identifier: MIT
"""Writes prune.txt: sequences of prunings, with the masks and values of PyTorch after each step.

    make_prune.py [SEED [COUNT]] > prune.txt

test_prune_pytorch replays the file; `make prune` writes and replays a fresh one with another seed.

A case begins with `case NAME`. `tensor I SHAPE : VALUES` is a parameter of a module of its own. A
step is one of
    prune I METHOD [: SCORES]       mask I : VALUES
    global METHOD : I I ...         scores I : VALUES (before it)
    remove I
and is followed by the masks, or the values, that PyTorch has then; or by `error TYPE`. After a
failure PyTorch's module may have lost its pruning, so the tensor is not used again."""
import random
import sys

import torch
from torch import nn
from torch.nn.utils import prune


def numbers(tensor):
    return ' '.join('%.9g' % v for v in tensor.detach().reshape(-1).tolist())


class Case:
    """One sequence, on parameters in modules of their own."""

    def __init__(self, name, *shapes, values=None):
        print('case', name)
        self.modules = []
        self.failed = False
        for i, shape in enumerate(shapes):
            module = nn.Module()
            own = torch.randn(*shape) if values is None else values
            module.register_parameter('w', nn.Parameter(own))
            self.modules.append(module)
            print('tensor', i, *shape, ':', numbers(own))

    def masks(self, *which):
        for i in which:
            print('is', i, ':', numbers(self.modules[i].w_mask))

    def attempt(self, which, code):
        try:
            code()
        except (ValueError, TypeError, IndexError, AssertionError) as error:
            print('error', type(error).__name__)
            self.failed = True
            return
        self.masks(*which)

    def prune(self, i, method, scores=None, **options):
        text = ', '.join('%s=%r' % (k, v) for k, v in options.items())
        print('prune', i, '%s(%s)' % (method.__name__, text), end='')
        print(' : ' + numbers(scores) if scores is not None else '')
        given = {} if scores is None else {'importance_scores': scores}
        self.attempt([i], lambda: method.apply(self.modules[i], 'w', **options, **given))

    def mask(self, i, mask):
        print('mask', i, ':', numbers(mask))
        self.attempt([i], lambda: prune.custom_from_mask(self.modules[i], 'w', mask))

    def globally(self, which, method, scores=None, **options):
        for i, given in (scores or {}).items():
            print('scores', i, ':', numbers(given))
        text = ', '.join('%s=%r' % (k, v) for k, v in options.items())
        print('global', '%s(%s)' % (method.__name__, text), ':', *which)
        pairs = [(self.modules[i], 'w') for i in which]
        given = {(self.modules[i], 'w'): v for i, v in (scores or {}).items()}
        self.attempt(
            which,
            lambda: prune.global_unstructured(
                pairs, pruning_method=method, importance_scores=given, **options
            ),
        )

    def remove(self, i):
        print('remove', i)
        prune.remove(self.modules[i], 'w')
        print('is', i, ':', numbers(self.modules[i].w))


SHAPES = [(6, 4), (5, 3, 2), (4, 3, 3, 3), (17,), (2, 1)]
# not 0: all slices have equal norms then, and PyTorch says nothing about their order
ORDERS = [1, 2, 3, float('inf'), float('-inf'), 'fro', 0.5]


def some_amount(rng, size):
    if rng.random() < 0.5:
        return rng.randint(0, max(size // 3, 1))
    return round(rng.random() * 0.6, 3)


def random_case(rng, k):
    shapes = [rng.choice(SHAPES) for _ in range(rng.randint(1, 3))]
    case = Case('random_%d' % k, *shapes)
    pruned = set()
    for _ in range(rng.randint(1, 5)):
        if case.failed:
            return
        i = rng.randrange(len(shapes))
        shape = shapes[i]
        size = torch.Size(shape).numel()
        kind = rng.choice(['l1', 'ln', 'mask', 'global', 'identity', 'scores'])
        scores = torch.randn(*shape) if kind == 'scores' else None
        if kind in ('l1', 'scores'):
            case.prune(i, prune.L1Unstructured, scores, amount=some_amount(rng, size))
        elif kind == 'identity':
            case.prune(i, prune.Identity)
        elif kind == 'mask':
            case.mask(i, (torch.rand(*shape) > 0.3).float())
        elif kind == 'ln' and len(shape) > 1:
            dim = rng.randint(-len(shape), len(shape) - 1)
            amount = rng.choice([0, 1, 0.3, 0.25])
            # PyTorch does not specify the order of slices whose smallest entries are masked either
            orders = [n for n in ORDERS if n != float('-inf') or i not in pruned]
            case.prune(i, prune.LnStructured, amount=amount, n=rng.choice(orders), dim=dim)
        elif kind == 'global':
            which = list(range(len(shapes)))
            case.globally(which, prune.L1Unstructured, amount=round(rng.random() * 0.4, 3))
            pruned.update(which)
            continue
        else:
            continue
        pruned.add(i)
    for i in sorted(pruned if not case.failed else []):
        case.remove(i)


def limits():
    case = Case('round_half_even', (17,), (5,), (10,), (3,))
    case.prune(0, prune.L1Unstructured, amount=0.4)
    case.prune(1, prune.L1Unstructured, amount=0.5)
    case.prune(2, prune.L1Unstructured, amount=0.25)
    case.prune(3, prune.L1Unstructured, amount=0.5)
    case = Case('one_and_one_point_zero', (6,), (6,), (6,), (6,))
    case.prune(0, prune.L1Unstructured, amount=1)
    case.prune(1, prune.L1Unstructured, amount=1.0)
    case.prune(2, prune.L1Unstructured, amount=0)
    case.prune(3, prune.L1Unstructured, amount=6)
    case.remove(0)
    for i, amount in enumerate((1.1, -0.1, -1, 7, 'x')):
        case = Case('amount_%d' % i, (6,))
        case.prune(0, prune.L1Unstructured, amount=amount)
    for dim in (2, 5):
        case = Case('dim_%d' % dim, (3, 4))
        case.prune(0, prune.LnStructured, amount=1, n=2, dim=dim)
    case = Case('vector', (4,))
    case.prune(0, prune.LnStructured, amount=1, n=2, dim=0)
    case = Case('too_many', (3, 4))
    case.prune(0, prune.LnStructured, amount=5, n=2, dim=1)
    rows = torch.tensor([[1.0, 2, 3, 4], [9, 0, 9, 9], [1, 1, 1, 1]])
    case = Case('count_of_entries', (3, 4), values=rows)
    case.prune(0, prune.LnStructured, amount=1, n=0, dim=0)
    case = Case('dims', (3, 4))
    case.prune(0, prune.LnStructured, amount=1, n=2, dim=-2)
    case.prune(0, prune.LnStructured, amount=1, n=2, dim=1)
    case.prune(0, prune.LnStructured, amount=2, n=2, dim=1)
    case.prune(0, prune.LnStructured, amount=2, n=2, dim=1)
    case = Case('wrong_mask', (3, 4))
    case.mask(0, torch.ones(4))
    case = Case('wrong_scores', (3, 4))
    case.prune(0, prune.L1Unstructured, torch.ones(5), amount=1)
    case = Case('right_mask', (3, 4))
    case.mask(0, torch.eye(3, 4))
    case = Case('global_scores', (3, 4), (5,))
    case.globally([0, 1], prune.L1Unstructured, {1: torch.tensor([9.0, 8, 7, 6, 5])}, amount=4)
    case.globally([0, 1], prune.L1Unstructured, amount=0.5)
    case = Case('global_structured', (3, 4), (5,))
    case.globally([0, 1], prune.LnStructured, amount=0.5, n=2, dim=0)
    case = Case('global_too_many', (3, 4), (5,))
    case.globally([0, 1], prune.L1Unstructured, amount=100)


def main():
    seed = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 24
    torch.manual_seed(seed)
    rng = random.Random(seed)
    print('# Made by make_prune.py with PyTorch %s; not edited by hand.' % torch.__version__)
    limits()
    for k in range(count):
        random_case(rng, k)


main()
