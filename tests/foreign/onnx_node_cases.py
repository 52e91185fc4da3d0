#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# Runs the node tests of the package onnx through a build of Tenon, and compares dtypes, shapes and
# values with those that the package computes (relative and absolute tolerances are its own).
# Prints the cases that are not right by operator, and their number. By hand, as other versions of
# the package have other cases:
#
#   PYTHON onnx_node_cases.py BUILD [--case NAME]... [--all]
#
# BUILD is the folder of a build. Its Python module is made in a folder that is removed at the end.
# --case NAME runs the cases with this in their name and prints each message; --all prints each
# message of all cases.
import argparse
import collections
import os
import shutil
import subprocess
import sys
import tempfile

import numpy as np
from onnx import TensorProto, numpy_helper

HERE = os.path.dirname(os.path.abspath(__file__))
# Names of ml_dtypes, which NumPy does not know; Tenon has the same.
NAMES = {name: name for name in ('float8_e4m3fn', 'float8_e5m2', 'bfloat16')}


def module_of(build, folder):
    """Makes the Python module of a build."""
    source = os.path.join(HERE, '../../bindings/python')
    shutil.copytree(os.path.join(source, 'tenon'), os.path.join(folder, 'tenon'))
    subprocess.check_call(
        [
            sys.executable,
            os.path.join(source, 'generate.py'),
            os.path.join(build, 'sdk'),
            os.path.join(folder, 'tenon/_api.py'),
        ]
    )
    os.environ['TENON_LIBRARY'] = os.path.join(build, '.libs/libtenon.so')
    os.environ.setdefault('TENON_PLUGIN_PATH', os.path.join(build, 'plugins/.libs'))
    sys.path.insert(0, folder)
    import tenon

    return tenon


def given(tenon, value):
    """An input as a tensor, a list of tensors, or None."""
    if value is None:
        return None
    if isinstance(value, (list, tuple)):
        return [given(tenon, item) for item in value]
    value = np.ascontiguousarray(value) if np.ndim(value) else np.asarray(value)
    name = NAMES.get(value.dtype.name)
    if name is None:
        return tenon.tensor(value)
    return tenon.from_memory(value, value.ctypes.data, value.shape, name).clone()


def difference(got, want, case):
    """What is wrong with a result; None: nothing."""
    if want is None or got is None:
        return None if want is got else 'got %s; expected %s' % (type(got), type(want))
    if isinstance(want, (list, tuple)):
        if not isinstance(got, (list, tuple)) or len(got) != len(want):
            return 'not a list of %d' % len(want)
        found = [difference(g, w, case) for g, w in zip(got, want)]
        return next((text for text in found if text), None)
    want = np.asarray(want)
    name = NAMES.get(want.dtype.name, want.dtype.name)
    if got.dtype != name:
        return 'dtype %s; expected %s' % (got.dtype, name)
    if tuple(got.shape) != want.shape:
        return 'shape %s; expected %s' % (tuple(got.shape), want.shape)
    got = got.detach()
    if want.dtype.name in NAMES:
        got, want = got.cast('float32'), want.astype(np.float32)
    got = np.asarray(got.contiguous().tolist(), want.dtype).reshape(want.shape)
    if np.allclose(got, want, rtol=case.rtol, atol=case.atol, equal_nan=True):
        return None
    with np.errstate(all='ignore'):
        most = np.nanmax(np.abs(got.astype(np.complex128) - want))
    return 'values, up to %g' % most


def array(value):
    """A value of a case; cases of Cast have tensors as in files."""
    return numpy_helper.to_array(value) if isinstance(value, TensorProto) else value


def loaded(path):
    """The network of a file; tenon.load() gives the tensors of files without a script."""
    from tenon import _library, _module

    with _library.Scope():
        pointer = _library.lib.tn_module_from_file(os.fsencode(path))
        return _module.adopt_module(_library.checked(pointer))


def run(tenon, case, folder):
    path = os.path.join(folder, 'net.onnx')
    with open(path, 'wb') as file:
        file.write(case.model.SerializeToString())
    net = loaded(path)
    for inputs, outputs in case.data_sets:
        found = net(*[given(tenon, array(value)) for value in inputs])
        found = list(found.values()) if isinstance(found, dict) else [found]
        for k, (got, want) in enumerate(zip(found, outputs)):
            text = difference(got, array(want), case)
            if text:
                return 'output %d: %s' % (k, text)
        if len(found) != len(outputs):
            return '%d results; expected %d' % (len(found), len(outputs))
    return None


def operator_of(case):
    nodes = [node for node in case.model.graph.node if node.op_type != 'Constant']
    return nodes[-1].op_type if nodes else 'Constant'


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('build')
    parser.add_argument('--case', action='append', default=[])
    parser.add_argument('--all', action='store_true')
    options = parser.parse_args()
    from onnx.backend.test.case.node import collect_testcases

    cases = collect_testcases(None)
    right, wrong = 0, collections.defaultdict(list)
    with tempfile.TemporaryDirectory() as folder:
        tenon = module_of(os.path.abspath(options.build), folder)
        for case in cases:
            if options.case and not any(name in case.name for name in options.case):
                continue
            try:
                text = run(tenon, case, folder)
            except Exception as error:
                text = '%s' % error
            if text is None:
                right += 1
                continue
            wrong[operator_of(case)].append(case.name)
            if options.case or options.all:
                print('%s: %s' % (case.name, text.replace(folder, '')))
    for operator, names in sorted(wrong.items(), key=lambda row: (-len(row[1]), row[0])):
        print('%4d %s' % (len(names), operator))
    total = right + sum(len(names) for names in wrong.values())
    print('%d of %d right' % (right, total))


if __name__ == '__main__':
    main()
