# SPDX-License-Identifier: MIT
"""Operators by name. Inputs and options of an operator are read from the library at run time, so
operators of plugins and of Python can be called, too. _api.OPERATORS has the texts for help()."""

import ctypes as c
import inspect
import threading

from . import _api
from ._library import NONE, Scope, check, checked, lib
from ._tensor import Tensor, address, borrow
from ._values import kind_of


class Operator:
    """An operator, with what its definition in the library says about inputs and options."""

    def __init__(self, name):
        self.name = name
        self.handle = checked(lib.tn_op_find(name.encode(), 0))
        found = checked(lib.tn_op_definition(self.handle)).contents
        if found.head.size != c.sizeof(_api.tn_op_def):
            raise ImportError("libtenon: wrong ABI; this module was generated for another one")
        self.flags = found.flags
        self.inputs = [(found.inputs[i].name.decode(), found.inputs[i].flags)
                       for i in range(found.n_inputs)]
        self.outputs = [found.outputs[i].name.decode() for i in range(found.n_outputs)]
        self.math = (found.math or b"").decode()
        self.help = (found.help or b"").decode()
        self.size = found.options_size
        self.defaults = c.string_at(found.defaults, self.size) if found.defaults else b""
        self.options = {}
        i = 0
        while found.options and found.options[i].kind != _api.TN_OPTION_KIND_END:
            row = found.options[i]
            name = row.name.decode()
            self.options[name] = (kind_of(row.kind, self.name, name), row.offset, row.flags,
                                  None if row.def_ is None else row.def_.decode())
            i += 1
        self.required = [n for n, row in self.options.items() if row[2] & _api.TN_OPTION_REQUIRED]
        self.is_list = bool(self.inputs) and bool(self.inputs[-1][1] & _api.TN_OPERAND_LIST)
        # The number of arguments if a call can consist of tensors only, or -1.
        self.simple = -1 if self.is_list or self.required else len(self.inputs)
        self.names = [n for n, _ in self.inputs] + list(self.options)

    # ---- arguments -------------------------------------------------------------------------

    def bind(self, args, kwargs):
        """Matches arguments with the operator; returns inputs in order, some of them perhaps
        numbers, and options by name."""
        if len(args) > len(self.names):
            raise TypeError(f"{self.name}: too many arguments, got {len(args)}; "
                            f"expected {', '.join(self.names)}")
        given = dict(zip(self.names, args))
        for name, value in kwargs.items():
            if name not in self.names:
                raise TypeError(f"{self.name}: {name}: no such argument; "
                                f"expected {', '.join(self.names) or 'none'}")
            if name in given:
                raise TypeError(f"{self.name}: {name}: given twice")
            given[name] = value
        inputs = []
        for name, flags in self.inputs:
            if name not in given and not flags & _api.TN_OPERAND_OPTIONAL:
                raise TypeError(f"{self.name}: {name}: missing; expected a Tensor")
            value = given.pop(name, None)
            if flags & _api.TN_OPERAND_LIST:
                inputs.extend([value] if isinstance(value, Tensor) else value)
            else:
                inputs.append(value)
        for name in self.required:
            if name not in given:
                raise TypeError(f"{self.name}: {name}: missing; it has no default")
        return inputs, given

    def tensors(self, inputs):
        """Converts numbers among the inputs to tensors without dimensions, on the device of the
        first tensor among the inputs."""
        if all(i is None or isinstance(i, Tensor) for i in inputs):
            return inputs
        from ._make import tensor

        other = next((i for i in inputs if isinstance(i, Tensor)), None)
        device = other.device if other is not None else None
        # Beside a tensor of 64-bit parts a number keeps all of its digits.
        wide = other is not None and other.dtype in ("float64", "complex128")
        exact = {float: "float64", complex: "complex128"} if wide else {}
        found = []
        for i in inputs:
            if isinstance(i, (bool, int, float, complex)):
                i = tensor(i, dtype=exact.get(type(i)), device=device)
            elif i is not None and not isinstance(i, Tensor):
                raise TypeError(f"{self.name}: input: wrong type, got {type(i).__name__}; "
                                "expected a Tensor or a number")
            found.append(i)
        return found

    def counts_numbers(self, inputs):
        """Whether numbers, as tensors without dimensions, would take part in the promotion. Beside
        tensors with dimensions they do not, unless their category is higher."""
        tensors = [i for i in inputs if isinstance(i, Tensor)]
        promotes = self.flags & (_api.TN_OP_PROMOTE | _api.TN_OP_PROMOTE_FLOAT)
        return bool(promotes and tensors) and all(t.ndim == 0 for t in tensors)

    def half_of(self, inputs):
        """The tensor of 16-bit floats beside a real number, which a half may be unable to hold:
        x / 65536 is computed in float32, as in PyTorch. None if there is none."""
        real = all(isinstance(i, (Tensor, bool, int, float)) for i in inputs)
        return next((i for i in inputs if real and isinstance(i, Tensor)
                     and i.dtype in ("float16", "bfloat16")), None)

    def struct(self, given, keep):
        """Returns the address of a struct of options; None if all options have their defaults."""
        if not given:
            return None
        made = c.create_string_buffer(self.defaults, self.size)
        for name, value in given.items():
            kind, offset, flags, _ = self.options[name]
            if value is None and not flags & _api.TN_OPTION_OPTIONAL:
                raise TypeError(f"{self.name}: {name}: None is not accepted")
            try:
                stored = kind.write(value, keep)
            except (TypeError, ValueError) as error:
                raise type(error)(f"{self.name}: {name}: {error}") from None
            member = kind.ctype.from_buffer(made, offset)
            if isinstance(stored, c.Structure):
                c.memmove(c.addressof(member), c.addressof(stored), c.sizeof(stored))
            else:
                member.value = stored
            keep.append(member)
        keep.append(made)
        return c.addressof(made)

    # ---- calls -----------------------------------------------------------------------------

    def call(self, args, kwargs, into=None):
        keep = []
        if kwargs or len(args) != self.simple or not all(type(a) is Tensor for a in args):
            inputs, given = self.bind(args, kwargs)
            if into is None and not all(i is None or isinstance(i, Tensor) for i in inputs):
                if self.name == "div" and (half := self.half_of(inputs)) is not None:
                    return self.call([i.cast("float32") if i is half else i for i in inputs],
                                     given).cast(half.dtype)
                if self.counts_numbers(inputs):
                    return self.call_beside_numbers(inputs, given)
            inputs, options = self.tensors(inputs), self.struct(given, keep)
        else:
            inputs, options = args, None
        count = len(inputs)
        array = (c.c_void_p * max(count, 1))(*[NONE if i is None else i._ptr for i in inputs])
        if into is not None:
            check(lib.tn_op_call_into(self.handle, array, count, options, address(into)))
            return into
        n_out = len(self.outputs)
        out = (c.c_void_p * max(n_out, 1))()
        with Scope():
            check(lib.tn_op_call(self.handle, array, count, options, out, n_out))
            found = tuple(borrow(out[i]) for i in range(n_out))
        return found[0] if n_out == 1 else found or None

    def call_beside_numbers(self, inputs, given):
        """The same call with tensors of one dimension, so that numbers count by their kind only."""
        inputs = [i.reshape([1]) if isinstance(i, Tensor) else i for i in inputs]
        result = self.call(inputs, given)
        return result.reshape([]) if isinstance(result, Tensor) else tuple(
            r.reshape([]) for r in result)


_operators = {}
_functions = {}
_lock = threading.Lock()


def operator(name):
    found = _operators.get(name)
    if found is None:
        found = _operators[name] = Operator(name)
    return found


def call_into(name, inputs, into):
    return operator(name).call(inputs, {}, into=into)


def _exists(name):
    if name in _operators or name in _api.OPERATORS:
        return True
    mark = lib.tn_error_mark()
    found = lib.tn_op_find(name.encode(), 0)
    lib.tn_error_restore(mark)
    return bool(found)


def _describe(function, name):
    """Sets the docstring and the signature that help() shows."""
    if name not in _api.OPERATORS:
        return
    inputs, outputs, options, mathematics, words = _api.OPERATORS[name]
    rows = [f"    {n}: {type_}, {'required' if required else 'default ' + default}"
            for n, type_, default, required in options]
    function.__doc__ = "\n".join([mathematics] + ([words] if words else []) + rows)
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter(n, kind) for n in inputs]
    needs = True
    for n, _, default, required in options:
        needs = needs and required
        parameters.append(inspect.Parameter(
            n, kind if needs or not required else inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if required else default))
    try:
        function.__signature__ = inspect.Signature(parameters)
    except ValueError:
        pass  # a required option follows one with a default, which Signature does not allow


def function(name):
    """Returns the function tenon.NAME, which calls an operator. NAME_ writes the result into the
    first input. Returns None if there is no such operator."""
    found = _functions.get(name)
    if found is not None:
        return found
    base, inplace = name, False
    if not _exists(base):
        if not (name.endswith("_") and _exists(name[:-1])):
            return None
        base, inplace = name[:-1], True

    if inplace:
        def call(*args, **kwargs):
            return operator(base).call(args, kwargs, into=args[0])
    else:
        def call(*args, out=None, **kwargs):
            return operator(base).call(args, kwargs, into=out)

    call.__name__ = call.__qualname__ = name
    _describe(call, base)
    with _lock:
        return _functions.setdefault(name, call)


def method(name):
    """Returns the function that becomes a method of tensors; None if there is no such operator."""
    return None if name.startswith("__") else function(name)


# ---- arithmetic ----------------------------------------------------------------------------------


def _is_number(value):
    return isinstance(value, (bool, int, float, complex))


def _binary(name, scalar=None, swapped=None):
    """Returns the methods for x OP y and y OP x. If given, `scalar(x, number)` computes x OP number
    and `swapped(x, number)` computes number OP x."""

    def forward(self, other):
        if _is_number(other) and scalar:
            return scalar(self, other)
        if not isinstance(other, Tensor) and not _is_number(other):
            return NotImplemented
        return operator(name).call((self, other), {})

    def reverse(self, other):
        if _is_number(other) and swapped:
            return swapped(self, other)
        if not _is_number(other):
            return NotImplemented
        return operator(name).call((other, self), {})

    return forward, reverse


def _unary(name, *args):
    return lambda self: operator(name).call((self,) + args, {})


def _inplace(name, scalar=None):
    def forward(self, other):
        if _is_number(other) and scalar:
            return operator(scalar).call((self, other), {}, into=self)
        return operator(name).call((self, other), {}, into=self)

    return forward


def _scalar(name):
    return lambda x, number: operator(name).call((x, number), {})


def _subtracted(x, number):
    """number - x. Unsigned integers are not negated before a float makes them floats."""
    if isinstance(number, (float, complex)):
        return operator("sub").call((number, x), {})
    return operator("add_scalar").call((-x, number), {})


def _define():
    add, mul = _scalar("add_scalar"), _scalar("mul_scalar")
    rows = {
        "add": _binary("add", add, add),
        "sub": _binary("sub", lambda x, n: add(x, -n), _subtracted),
        "mul": _binary("mul", mul, mul),
        "truediv": _binary("div"),
        "pow": _binary("pow", _scalar("pow_scalar")),
        "matmul": _binary("matmul"),
        "mod": _binary("remainder"),
        "and": _binary("bitwise_and"),
        "or": _binary("bitwise_or"),
        "xor": _binary("bitwise_xor"),
    }
    for name, (forward, reverse) in rows.items():
        setattr(Tensor, f"__{name}__", forward)
        setattr(Tensor, f"__r{name}__", reverse)
    for name in ("eq", "ne", "lt", "le", "gt", "ge"):
        setattr(Tensor, f"__{name}__", _binary(name)[0])
    Tensor.__neg__ = _unary("neg")
    Tensor.__abs__ = _unary("abs")
    Tensor.__invert__ = _unary("bitwise_not")
    Tensor.__iadd__ = _inplace("add", "add_scalar")
    Tensor.__imul__ = _inplace("mul", "mul_scalar")
    Tensor.__isub__ = _inplace("sub")
    Tensor.__itruediv__ = _inplace("div")


_define()
