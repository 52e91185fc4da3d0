# SPDX-License-Identifier: MIT
"""Operators and kernels that are written in Python."""

import ctypes as c

from . import _api
from ._define import Options, _overrides, _text
from ._library import NONE, callback, head, held, hold, lib, member, register
from ._tensor import _ELEMENTS, array_interface, borrow, to_scope
from ._values import DTYPES, dtype_number

_BY_VIEW = {  # dtypes by DLPack's type code and number of bits
    (0, 8): _api.TN_I8, (0, 16): _api.TN_I16, (0, 32): _api.TN_I32, (0, 64): _api.TN_I64,
    (1, 8): _api.TN_U8, (1, 16): _api.TN_U16, (1, 32): _api.TN_U32, (1, 64): _api.TN_U64,
    (2, 16): _api.TN_F16, (2, 32): _api.TN_F32, (2, 64): _api.TN_F64, (4, 16): _api.TN_BF16,
    (5, 64): _api.TN_C64, (5, 128): _api.TN_C128, (6, 8): _api.TN_BOOL,
    (10, 8): _api.TN_F8_E4M3, (12, 8): _api.TN_F8_E5M2,
}


class View:
    """Shape, strides and dtype of an input or output of an operator; in a kernel also its
    memory."""

    def __init__(self, view):
        view = view.contents
        self._number = _BY_VIEW[view.dtype.code, view.dtype.bits]
        self.dtype = DTYPES[self._number]
        self.shape = tuple(view.shape[i] for i in range(view.ndim))
        self.strides = tuple(view.strides[i] for i in range(view.ndim))
        self.address = (view.data or 0) + view.byte_offset

    @property
    def __array_interface__(self):
        return array_interface(self._number, self.shape, self.strides, self.address or 64)

    def numpy(self):
        """Returns a NumPy array that shares the memory; it is valid until the kernel returns."""
        import numpy

        return numpy.asarray(self)

    def elements(self):
        """Returns the elements as a ctypes array that shares the memory. The view must be
        contiguous."""
        type_, parts = _ELEMENTS[self._number]
        count = parts
        for size in self.shape:
            count *= size
        return (type_ * max(count, 1)).from_address(self.address)


class Meta:
    """Shape and dtype of an output. infer returns one for each output."""

    def __init__(self, shape, dtype):
        self.shape, self.dtype = tuple(shape), dtype


def kernel(device="cpu", dtypes=("float32", "float64")):
    """Marks a method of an Operator as its kernel for a device type that uses host memory. The
    method is called as method(inputs..., outputs...) with Views; options are attributes of self."""

    def mark(function):
        function._kernel = (device, tuple(dtypes))
        return function

    return mark


_FLAGS = {"view": _api.TN_OP_VIEW, "promote": _api.TN_OP_PROMOTE, "inplace": _api.TN_OP_INPLACE,
          "promote_float": _api.TN_OP_PROMOTE_FLOAT, "primitive": _api.TN_OP_PRIMITIVE,
          "random": _api.TN_OP_RANDOM, "pointwise": _api.TN_OP_POINTWISE,
          "reads": _api.TN_OP_READS, "ordered": _api.TN_OP_ORDERED}


class Operator:
    """An operator that is written in Python. Each subclass is registered under its name:

        class cube(tenon.Operator, inputs=["x"], outputs=["y"], save=["x"]):
            def infer(self, x):
                return tenon.Meta(x.shape, x.dtype)

            def derive(self, gy, x):
                return gy * x * x * 3.0

            @tenon.kernel("cpu")
            def run(self, x, y):
                y.numpy()[...] = x.numpy() ** 3

    tenon.cube(x) calls it. Options are declared as attributes of the class (tenon.option); their
    values are attributes of self. derive is called with the gradients of the outputs and, as
    keywords, the inputs and outputs that `save` names; it returns the gradients of the inputs, None
    for an input without one. decompose(inputs...) computes the outputs with other operators, on any
    device; a kernel works for one device type."""

    def __init_subclass__(cls, name=None, inputs=("x",), outputs=("y",), save=(), flags=(),
                          math="", **kwargs):
        super().__init_subclass__(**kwargs)
        cls._inputs, cls._outputs, cls._save = tuple(inputs), tuple(outputs), tuple(save)
        _register(cls, name or cls.__name__, flags, math)

    def infer(self, *inputs):
        raise NotImplementedError(f"{type(self).__name__}: the class does not define infer")

    def derive(self, *gradients, **saved):
        raise NotImplementedError(f"{type(self).__name__}: the class does not define derive")

    def decompose(self, *inputs):
        raise NotImplementedError(f"{type(self).__name__}: the class does not define decompose")


def _operands(names):
    made = (_api.tn_operand * len(names))()
    for place, name in zip(made, names):
        place.name = name.encode()
    return made


def _register(class_, name, flags, math):
    keep = class_._keep = []
    class_._options = options = Options(class_, with_size=True)
    class_._number = hold(class_)
    inputs, outputs = _operands(class_._inputs), _operands(class_._outputs)
    keep += [inputs, outputs]
    def_ = _api.tn_op_def(head(_api.tn_op_def), name.encode(), math.encode(),
                          _text(class_.__doc__), class_._number)
    for flag in flags:
        def_.flags |= _FLAGS[flag]
    def_.inputs, def_.n_inputs = inputs, len(inputs)
    def_.outputs, def_.n_outputs = outputs, len(outputs)
    if options.rows:
        def_.options, def_.options_size = options.pointer(), options.size
        def_.defaults = c.addressof(options.defaults(keep))
    def_.revision, def_.dispatch_input = 1, -1
    for saved in class_._save:
        if saved in class_._inputs:
            def_.save_in |= 1 << class_._inputs.index(saved)
        else:
            def_.save_out |= 1 << class_._outputs.index(saved)
    def_.infer = _infer
    if _overrides(class_, Operator, "derive"):
        def_.derive = _derive
    if _overrides(class_, Operator, "decompose"):
        def_.decompose = _decompose
    register(def_)
    for method in list(vars(class_).values()):
        if hasattr(method, "_kernel"):
            _register_kernel(class_, name, method)


def _register_kernel(class_, name, method):
    device, dtypes = method._kernel
    def_ = _api.tn_kernel_def(head(_api.tn_kernel_def), name.encode(), device.encode(),
                              f"python_{name}_{method.__name__}".encode(), 1)
    for dtype in dtypes:
        def_.dtypes |= 1 << dtype_number(dtype)
    def_.user = hold((class_, method))
    def_.run = _run
    register(def_)


def _self(class_, options):
    made = object.__new__(class_)
    made.__dict__.update(class_._options.read(options))
    return made


def _several(result):
    return result if isinstance(result, tuple) else (result,)


@callback(member(_api.tn_op_def, "infer"))
def _infer(infer):
    call = infer.contents
    class_ = held(call.op.contents.user)
    views = [View(call.in_[i]) if call.in_[i] else None for i in range(call.n_in)]
    results = _several(_self(class_, call.options).infer(*views))
    if len(results) != call.n_out:
        raise ValueError(f"infer: wrong number of results, got {len(results)}; "
                         f"expected {call.n_out}")
    for i, meta in enumerate(results):
        out = call.out[i]
        out.dtype, out.ndim = dtype_number(meta.dtype), len(meta.shape)
        for d, size in enumerate(meta.shape):
            out.shape[d] = size


@callback(member(_api.tn_op_def, "derive"))
def _derive(derive):
    call = derive.contents
    class_ = held(call.op.contents.user)
    saved = {}
    for name in class_._save:
        place, row = ((call.in_, class_._inputs) if name in class_._inputs
                      else (call.out, class_._outputs))
        # A tensor that was changed in place after it was saved is NULL here. Operators that get it
        # as None fail, and the core reports the reason.
        pointer = place[row.index(name)]
        saved[name] = borrow(pointer) if pointer else None
    gradients = [borrow(call.gout[i]) for i in range(call.n_out)]
    results = _several(_self(class_, call.options).derive(*gradients, **saved))
    if len(results) != call.n_in:
        raise ValueError(f"derive: wrong number of gradients, got {len(results)}; "
                         f"expected {call.n_in}")
    for i, result in enumerate(results):
        if call.need >> i & 1:
            call.gin[i] = to_scope(result)


@callback(member(_api.tn_op_def, "decompose"))
def _decompose(decompose):
    call = decompose.contents
    class_ = held(call.op.contents.user)
    inputs = [borrow(call.in_[i]) for i in range(call.n_in)]
    for i, result in enumerate(_several(_self(class_, call.options).decompose(*inputs))):
        call.out[i] = to_scope(result)


@callback(member(_api.tn_kernel_def, "run"))
def _run(call):
    call = call.contents
    class_, method = held(call.kernel.contents.user)
    inputs = [View(call.in_[i]) if call.in_[i] else None for i in range(call.n_in)]
    outputs = [View(call.out[i]) for i in range(call.n_out)]
    method(_self(class_, call.options), *inputs, *outputs)
