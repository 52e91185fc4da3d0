#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# LoRA adapters of a GPT-2 as peft and transformers train them.
#   make_lora.py > lora_values.h     a small network in float64, for tests/models/test_lora.c;
#                                    its weights are from a formula that the test repeats
#   make_lora.py --live BUILD [WORD] (make models) GPT-2 small: 20 steps of an optimizer (those
#                                    whose spec has WORD) on a short sequence, by tests/models/lora;
#                                    compares losses, adapters, and results with adapters saved
#                                    alone and merged
# Ends with 77, and says SKIP, if PyTorch, transformers or peft is not installed.
import copy
import os
import subprocess
import sys
import tempfile
import textwrap

try:
    import peft
    import torch
    import transformers
    from safetensors.torch import load_file, save_file
except ImportError as missing:
    print('SKIP: %s' % missing)
    sys.exit(77)

STEPS = 20
# For GPT-2 small: the greatest difference, in units of the largest number. In float32, Adam divides
# gradients by their own size, also those that are only rounding; and at a large rate the rounding
# of one step grows in the next ones. So PyTorch in float32 is as far from PyTorch in float64 as
# Tenon is; for 15 seeds, the geometric means (and the largest) of these distances were
#                     PyTorch float32      Tenon float32        Tenon to PyTorch
#   losses            5.2e-7 (6.2e-6)      4.9e-7 (4.4e-6)      6.3e-7 (4.4e-6)
#   results           6.7e-6 (7.5e-5)      7.1e-6 (7.1e-5)      6.0e-6 (3.8e-5)
#   adapters, rms     3.3e-5 (3.7e-4)      3.4e-5 (3.6e-4)      3.1e-5 (1.2e-4)
# A single seed differs by a factor of up to 6 in either direction. So AdamW in float32 is compared
# by its losses, and by its distance from float64, which may be FARTHER times that of PyTorch.
LIVE = [
    ('SGD(lr=0.005)', torch.optim.SGD, dict(lr=0.005), 'float32', 1e-5),
    ('AdamW(lr=0.001)', torch.optim.AdamW, dict(lr=0.001), 'float64', 1e-9),
    ('AdamW(lr=0.001)', torch.optim.AdamW, dict(lr=0.001), 'float32', None),
]
LOSSES = 1e-5
FARTHER = 10


def network(**config):
    config = transformers.GPT2Config(
        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, use_cache=False, **config
    )
    return transformers.GPT2LMHeadModel(config)


def with_adapters(model, rank, alpha):
    # peft computes a product with fan_in_fan_out for Conv1D, whose weight is [in, out].
    config = peft.LoraConfig(
        r=rank,
        lora_alpha=alpha,
        lora_dropout=0.0,
        target_modules=['c_attn', 'c_proj', 'c_fc'],
        fan_in_fan_out=True,
        bias='none',
    )
    return peft.get_peft_model(model, config)


def adapters(model):
    """The trained parameters, by the names that they have in Tenon."""
    found = {}
    for name, p in model.named_parameters():
        if p.requires_grad:
            path, _, which = name.rpartition('.lora_')
            path = path.removeprefix('base_model.model.')
            found[f'{path}.parametrizations.weight.0.lora_{which[0]}'] = p
    return found


def train(model, tokens, make, options):
    optimizer = make(adapters(model).values(), **options)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        logits = model(tokens).logits
        loss = torch.nn.functional.cross_entropy(
            logits[:, :-1].reshape(-1, logits.shape[-1]), tokens[:, 1:].reshape(-1)
        )
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


# ---- the recorded network ----


def fill(name, tensor):
    seed = sum(name.encode())
    k = torch.arange(tensor.numel())
    values = ((7 * k + 13 * seed) % 29 - 14).double() / 58.0
    with torch.no_grad():
        tensor.copy_(values.reshape(tensor.shape))


def array(name, numbers):
    print(f'static const double {name}[] =')
    text = '{ ' + ', '.join(repr(x) for x in numbers) + ' };'
    print('\n'.join(textwrap.wrap(text, 96, initial_indent='    ', subsequent_indent='      ')))


def recorded():
    torch.set_default_dtype(torch.float64)
    model = network(vocab_size=13, n_positions=12, n_embd=8, n_layer=2, n_head=2)
    for name, p in model.named_parameters():
        fill(name, p)
    model = with_adapters(model, 2, 4)
    for name, p in adapters(model).items():
        if name.endswith('lora_A'):
            fill(name, p)
    tokens = torch.arange(16).reshape(2, 8) * 5 % 13
    losses = train(model, tokens, torch.optim.AdamW, dict(lr=0.01))
    print('/* SPDX-License-Identifier: MIT\n *\n * Written by make_lora.py. */')
    array('losses', losses)
    array('trained', [x for p in adapters(model).values() for x in p.detach().flatten().tolist()])
    array('results', model(tokens).logits.detach().flatten().tolist())


# ---- GPT-2 small ----


def apart(a, b):
    return ((a - b).abs().max() / b.abs().max()).item()


def with_results(model, tokens):
    model.eval()
    with torch.no_grad():
        return model(tokens).logits


def compared(build, spec, make, options, dtype, wide):
    """Returns the differences; with `wide`, those from a run in float64, and PyTorch's own."""
    torch.manual_seed(3)
    model = network().to(getattr(torch, dtype))
    tokens = torch.randint(0, 50257, (1, 16))
    with tempfile.TemporaryDirectory() as folder:
        names = ['weights', 'start', 'data', 'adapters', 'results']
        files = [os.path.join(folder, name + '.safetensors') for name in names]
        state = {k: v.clone() for k, v in model.state_dict().items() if k != 'lm_head.weight'}
        save_file(state, files[0])
        model = with_adapters(model, 8, 16)
        save_file({k: v.detach().clone() for k, v in adapters(model).items()}, files[1])
        save_file({'tokens': tokens}, files[2])
        exact = copy.deepcopy(model).double() if wide else None
        losses = train(model, tokens, make, options)
        command = [os.path.join(build, 'run'), os.path.join(build, 'tests/models/lora')]
        command += [f"gpt2_small(dropout=0, dtype='{dtype}')", '8', '16', spec] + files
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
        own = [float(x) for x in done.stdout.split()]
        given, results = load_file(files[3]), load_file(files[4])
        size = os.path.getsize(files[3])
    logits = with_results(model, tokens)
    expected = {k: v.detach() for k, v in adapters(model).items()}
    if given.keys() != expected.keys():
        sys.exit('FAILED: the file of the adapters has other names')
    print('%s: loss %.4f -> %.4f; %d bytes of adapters' % (spec, losses[0], losses[-1], size))
    own, losses = (torch.tensor(x, dtype=torch.float64) for x in (own, losses))
    if wide:
        train(exact, tokens, make, options)
        true = with_results(exact, tokens)
        return {
            'losses': apart(own, losses),
            'from float64': apart(results['trained'].double(), true),
            'PyTorch from float64': apart(logits.double(), true),
        }
    return {
        'losses': apart(own, losses),
        'adapters': max(apart(given[k], v) for k, v in expected.items()),
        'results': apart(results['trained'], logits),
        'adapters saved alone': apart(results['loaded'], logits),
        'merged': apart(results['merged'], logits),
    }


def live(build, only):
    failed = 0
    for spec, make, options, dtype, most in LIVE:
        if only and only not in spec:
            continue
        found = compared(build, spec, make, options, dtype, most is None)
        # of a run in float32 beside one in float64
        limits = {'losses': LOSSES, 'from float64': FARTHER * found.get('PyTorch from float64', 0)}
        for what, value in found.items():
            good = value <= (most if most is not None else limits.get(what, value))
            failed += not good
            print('%s: GPT-2 small, LoRA, %s: %.1e' % ('ok' if good else 'FAILED', what, value))
    sys.exit(failed > 0)


if sys.argv[1:2] == ['--live']:
    live(sys.argv[2], ''.join(sys.argv[3:4]))
recorded()
