#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# Compares the arguments and defaults of the rules in plugins/foreign/rules_*.c with PyTorch's
# schemas, and says which rules no case of function_cases.py calls. `make oracle` runs it.
#
#   PYTHON check_rules.py FOLDER    the folder with the rules
import glob
import re
import sys

import torch

from make_functions import called_functions

# Arguments that no rule needs (rules_is_ignored() in rules.c), or that only some overloads have.
IGNORED = {'device', 'layout', 'memory_format', 'pin_memory', 'non_blocking', 'generator'}
# Overloads that programs do not contain: of Python's numbers, lists and texts, of names of
# dimensions, or with another dtype for the result. They are refused.
OTHERS = re.compile(r'Dimname|[Dd]ict|out_dtype|str self|\bel\b|\.\.\.|aten::\w+\.list_|::normal\.')
REFUSED = {
    'aten.view.dtype',
    'aten.view_copy.dtype',
    'aten.isin.Scalar_Tensor',
    'aten.copy.t',
    'aten.split.default',
}
# Rules whose functions cannot be in a program of their own.
UNCALLED = re.compile(r'sym_|_assert|_local_scalar_dense|lift_fresh$|_reshape_alias')


def rows_of(path):
    with open(path) as file:
        text = file.read()
    macros = dict(re.findall(r'#define ([A-Z]+)((?:.*\\\n)*.*)', text))
    table = text[text.find('const tn_rule_def rules_') :]
    piece = r'(?:"[^"]*"|[A-Z]+)'
    for row in re.findall(r'\{ (%s(?:\s+%s)*),\s*\.(?:text|call)' % (piece, piece), table):
        words = ''
        for quoted, macro in re.findall(r'"([^"]*)"|([A-Z]+)', row):
            words += ''.join(re.findall('"([^"]*)"', macros[macro])) if macro else quoted
        yield words


def arguments_of(row):
    """The arguments of a rule: names and defaults, None for none, '*' for any value."""
    inside = row[row.index('(') + 1 : -1]
    found = {}
    for part in re.findall(r'(\w+)(?:=(\[[^]]*\]|[^,\[]+))?', inside):
        found[part[0]] = part[1].strip() or None
    return found


def equal(ours, theirs):
    ours = eval(ours)
    if ours == []:  # the operator's own default
        return theirs in (None, 0, 1) or isinstance(theirs, list)
    if isinstance(theirs, float):
        return abs(ours - theirs) <= 1e-12 * abs(theirs)
    return ours == theirs or (ours == 'int64' and theirs == 4) or theirs == [-2, -1]


def overloads_of(name, names):
    parts = name.split('.')
    packet = getattr(torch.ops.aten, parts[1])
    if len(parts) > 2:
        return [getattr(packet, parts[2])]
    all_names = [o for o in packet.overloads() if '%s.%s' % (name, o) not in names]
    return [getattr(packet, o) for o in all_names]


def compare(name, row, names):
    ours = arguments_of(row)
    for overload in overloads_of(name, names):
        schema = overload._schema
        text = str(schema)
        if OTHERS.search(text) or 'Tensor' not in text or str(overload) in REFUSED:
            continue
        if any(a.is_out for a in schema.arguments) and 'out' not in ours:
            continue
        if schema.arguments[0].name in ('a', 'l', 'tensors') and not (
            schema.arguments[0].name in ours
        ):
            continue
        theirs = {a.name: a for a in schema.arguments if a.name not in IGNORED}
        for argument in theirs.values():
            if argument.name not in ours:
                yield '%s: %s has the argument %s' % (name, overload, argument.name)
                continue
            default = ours[argument.name]
            if default == '*':
                continue
            if argument.has_default_value() and default is None:
                yield '%s: %s: %s has a default' % (name, overload, argument.name)
            elif argument.has_default_value() and not equal(default, argument.default_value):
                yield '%s: %s: the default of %s is %s' % (
                    name,
                    overload,
                    argument.name,
                    argument.default_value,
                )
        for argument in ours:
            if ours[argument] is None and argument not in theirs:
                yield '%s: %s has no argument %s' % (name, overload, argument)


def rule_of(function, names):
    """As rules_find() in rules.c."""
    base = '.'.join(function.split('.')[:2])
    places = [function, base]
    if base.endswith('_'):
        places += [base[:-1] + function[len(base) :], base[:-1]]
    return next((place for place in places if place in names), None)


def main(folder):
    names = {}
    for path in sorted(glob.glob(folder + '/rules_*.c')):
        names.update({row.split('(')[0]: row for row in rows_of(path)})
    ours = sorted(n for n in names if n.split('.')[0] in ('aten', 'prims'))
    wrong = [x for n in ours if n.startswith('aten.') for x in compare(n, names[n], names)]
    used = {rule_of(function, names) for function in called_functions()}
    wrong += ['%s: no case' % n for n in ours if n not in used and not UNCALLED.search(n)]
    print('\n'.join(wrong + ['%d rules, %d wrong' % (len(ours), len(wrong))]))
    return 1 if wrong or len(ours) < 600 else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1]))
