# SPDX-License-Identifier: MIT
#
# Writes parametrize_values.h: what PyTorch's parametrizations compute, for the tests to compare
# with. Each case: the state after the parametrization was added, the value, the gradients of a sum
# over the value, and the value after a step of SGD(lr=0.1).
#   python make_parametrize.py > parametrize_values.h
import textwrap

import torch
from torch import nn
from torch.nn.utils import parametrizations as p
from torch.nn.utils import parametrize

torch.manual_seed(17)
torch.set_default_dtype(torch.float64)


class Symmetric(nn.Module):
    def forward(self, x):
        return x.triu() + x.triu(1).mT

    def right_inverse(self, a):
        return a.triu()


def symmetric(module, name):
    parametrize.register_parametrization(module, name, Symmetric())


def words(options):
    return ', '.join(f'{key}={value!r}' for key, value in options.items())


def weight_norm(**options):
    return f'WeightNorm({words(options)})', lambda m, name: p.weight_norm(m, name, **options)


def spectral_norm(**options):
    return f'SpectralNorm({words(options)})', lambda m, name: p.spectral_norm(m, name, **options)


def orthogonal(**options):
    return f'Orthogonal({words(options)})', lambda m, name: p.orthogonal(m, name, **options)


SYMMETRIC = ('Symmetric()', symmetric)
LINEAR = ('Linear(3, 4)', lambda: nn.Linear(3, 4))
SQUARE = ('Linear(4, 4)', lambda: nn.Linear(4, 4))
WIDE = ('Linear(4, 3)', lambda: nn.Linear(4, 3))
CONV = ('Conv2d(2, 3, 2)', lambda: nn.Conv2d(2, 3, 2))
TRANSPOSED = ('ConvTranspose1d(2, 3, 2)', lambda: nn.ConvTranspose1d(2, 3, 2))

CASES = [
    (LINEAR, 'weight', [weight_norm()]),
    (LINEAR, 'weight', [weight_norm(dim=1)]),
    (LINEAR, 'weight', [weight_norm(dim=None)]),
    (LINEAR, 'bias', [weight_norm()]),
    (CONV, 'weight', [weight_norm()]),
    (CONV, 'weight', [weight_norm(dim=2)]),
    (LINEAR, 'weight', [spectral_norm()]),
    (LINEAR, 'weight', [spectral_norm(n_power_iterations=3, eps=1e-6)]),
    (LINEAR, 'weight', [spectral_norm(dim=1)]),
    (LINEAR, 'bias', [spectral_norm()]),
    (CONV, 'weight', [spectral_norm()]),
    (TRANSPOSED, 'weight', [spectral_norm()]),
    (SQUARE, 'weight', [SYMMETRIC]),
    (SQUARE, 'weight', [SYMMETRIC, orthogonal(use_trivialization=False)]),
    (SQUARE, 'weight', [SYMMETRIC, spectral_norm()]),
] + [
    (layer, 'weight', [orthogonal(orthogonal_map=name, use_trivialization=base)])
    for layer in (LINEAR, SQUARE, WIDE)
    for name in ('matrix_exp', 'cayley', 'householder')
    for base in (True, False)
]


def numbers(tensors):
    flat = [x for t in tensors for x in t.detach().reshape(-1).tolist()]
    return '{ ' + ', '.join(repr(x) for x in flat) + ' }'


def array(name, tensors):
    print(f'static const double {name}[] =')
    text = numbers(tensors) + ';'
    print('\n'.join(textwrap.wrap(text, 96, initial_indent='    ', subsequent_indent='      ')))


rows = []
version = torch.__version__.split('+')[0]
print('/* SPDX-License-Identifier: MIT\n *')
print(' * Made by make_parametrize.py with PyTorch %s; not edited by hand. */' % version)
for index, ((spec, make), name, chain) in enumerate(CASES):
    module = make()
    array(f'weight_{index}', [getattr(module, name)])
    for _, add in chain:
        add(module, name)
    state = {k: v for k, v in module.state_dict().items() if k.startswith('parametrizations.')}
    array(f'state_{index}', state.values())
    keys = ' '.join(state)
    value = getattr(module, name)
    array(f'value_{index}', [value])
    factor = torch.randn_like(value)
    array(f'factor_{index}', [factor])
    (value * factor).sum().backward()
    originals = [v for k, v in module.named_parameters() if k.startswith('parametrizations.')]
    array(f'gradients_{index}', [v.grad for v in originals])
    with torch.no_grad():
        for v in originals:
            v -= 0.1 * v.grad
    array(f'after_{index}', [getattr(module, name)])
    text = repr(module).replace('\n', '\\n"\n      "')
    specs = ' '.join(s.replace(' ', '') for s, _ in chain)
    lines = [f'"{spec}"', f'"{name}"', f'"{specs}"', f'"{keys}"', f'"{text}"']
    lines += [f'{v}_{index}' for v in 'weight state value factor gradients after'.split()]
    rows.append('    { ' + ',\n      '.join(lines) + ' },')
print('''
static const struct parametrize_case {
    const char *layer, *name; /* with dtype float64 */
    const char *specs;        /* separated by spaces */
    const char *keys;         /* of the state, separated by spaces */
    const char *printed;
    const double *weight, *state, *value, *factor, *gradients, *after;
} parametrize_cases[] = {''')
print('\n'.join(rows))
print('};')
