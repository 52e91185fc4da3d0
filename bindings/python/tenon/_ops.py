# SPDX-License-Identifier: MIT
"""Operators by name. Inputs and options of an operator are read from the library at run time, so
operators of plugins and of Python can be called, too. _api.OPERATORS has the texts for help()."""

import collections
import ctypes as c
import inspect
import threading

from . import _api, _signatures
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
        self.result = None  # of several outputs: a tuple with their names
        if len(self.outputs) > 1:
            self.result = collections.namedtuple(name, self.outputs, rename=True)
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
        self.optional = {n for n, flags in self.inputs if flags & _api.TN_OPERAND_OPTIONAL}
        self.is_list = bool(self.inputs) and bool(self.inputs[-1][1] & _api.TN_OPERAND_LIST)
        # The number of arguments if a call can consist of tensors only, or -1.
        self.simple = -1 if self.is_list or self.required else len(self.inputs)
        self.names = [n for n, _ in self.inputs] + list(self.options)
        self.aliases = {}  # other names of the arguments
        for other, own in _signatures.NAMES:
            if isinstance(own, int):
                own = self.inputs[own][0] if own < len(self.inputs) else None
            if own in self.names and other not in self.names:
                self.aliases.setdefault(other, own)

    # ---- arguments -------------------------------------------------------------------------

    def bind(self, args, kwargs):
        """Matches arguments with the operator; returns inputs in order, some of them perhaps
        numbers, and options by name."""
        if len(args) > len(self.names):
            raise TypeError(f"{self.name}: too many arguments, got {len(args)}; "
                            f"expected {', '.join(self.names)}")
        given = dict(zip(self.names, args))
        for name, value in kwargs.items():
            name = self.aliases.get(name, name)
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
            kind, offset, flags, row_default = self.options[name]
            if value is None and not flags & _api.TN_OPTION_OPTIONAL:
                if kind.number == _api.TN_OPTION_KIND_INTS and row_default == "[]":
                    continue  # dim=None: all of them
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
        return found[0] if n_out == 1 else self.result(*found) if found else None

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


class _Default:
    """A default in the words of an operator's definition, for help()."""

    def __init__(self, words):
        self.words = words

    def __repr__(self):
        return self.words


def _describe(function, name, row):
    """Sets the docstring and the signature that help() shows."""
    if name not in _api.OPERATORS:
        return
    inputs, outputs, options, mathematics, words = _api.OPERATORS[name]
    rows = [f"    {n}: {type_}, {'required' if required else 'default ' + default}"
            for n, type_, default, required in options]
    function.__doc__ = "\n".join([mathematics] + ([words] if words else []) + rows)
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    optional = operator(name).optional
    known = {n: (n not in optional, "None") for n in inputs}
    known.update({n: (required, default) for n, _, default, required in options})
    kinds = {n: "tensor" for n in inputs}
    kinds.update({n: type_ for n, type_, _, _ in options})
    types = {}
    own = row or [_signatures.Parameter(n, False) for n in known]
    parameters, needs = [], True
    for p in own:
        place = {"input": inputs[0]}.get(p.own, p.own) if inputs else p.own
        needed, default = known.get(place, (False, "None"))
        if p.default is not None:
            needed, default = False, repr(p.default[0])
        needs = needs and needed and not p.keyword
        types[p.name] = kinds.get(place, "")
        parameters.append(inspect.Parameter(
            p.name, kind if needs or not needed and not p.keyword
            else inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if needed else _Default(default)))
    function.types = (types, len(outputs))  # of the parameters, for stubs.py
    try:
        function.__signature__ = inspect.Signature(parameters)
    except ValueError:
        pass  # a required option follows one with a default, which Signature does not allow


def _caller(name, base, row, inplace):
    """Returns the function NAME that calls the operator `base`, whose parameters are those of a row
    of _signatures, or without one the operator's own."""

    def call(*args, out=None, **kwargs):
        found = operator(base)
        into = out
        if inplace or "inplace" in kwargs and "inplace" not in found.names:
            asked = True if inplace else kwargs.pop("inplace")
            into = args[0] if asked and args else out
        if row is not None:
            args, kwargs = (), _signatures.translate(name, row, args, kwargs)
        return found.call(args, kwargs, into=into)

    return call


def function(name, rows=_signatures.ROWS):
    """Returns the function tenon.NAME, which calls an operator or is one of _compose. NAME_ writes
    the result into the first input. Returns None if there is no such operator."""
    from ._compose import FUNCTIONS

    if name in FUNCTIONS and rows is _signatures.ROWS:
        return FUNCTIONS[name]
    key = name if rows is _signatures.ROWS else "nn.functional." + name
    found = _functions.get(key)
    if found is not None:
        return found
    base, inplace = name, False
    if name not in rows and not _exists(name):
        base, inplace = name[:-1], True
        if not name.endswith("_") or base not in rows and not _exists(base):
            return None
    own, row = rows.get(base, (base, None))
    call = _caller(name, own, row, inplace)
    call.__name__ = call.__qualname__ = name
    _describe(call, own, row)
    with _lock:
        return _functions.setdefault(key, call)


def method(name):
    """Returns the function that becomes a method of tensors; None if there is no such operator."""
    from ._compose import METHODS, NOT_METHODS

    if name.startswith("__") or name in NOT_METHODS and name not in METHODS:
        return None
    return METHODS.get(name) or function(name)


# ---- arithmetic ----------------------------------------------------------------------------------


def _is_number(value):
    return isinstance(value, (bool, int, float, complex))


def _floored(x, number):
    return operator("div").call((x, number), {"rounding_mode": "floor"})


def _binary(name, scalar=None, swapped=None, options=None):
    """Returns the methods for x OP y and y OP x. If given, `scalar(x, number)` computes x OP number
    and `swapped(x, number)` computes number OP x."""

    def forward(self, other):
        if _is_number(other) and scalar:
            return scalar(self, other)
        if not isinstance(other, Tensor) and not _is_number(other):
            return NotImplemented
        return operator(name).call((self, other), options or {})

    def reverse(self, other):
        if _is_number(other) and swapped:
            return swapped(self, other)
        if not _is_number(other):
            return NotImplemented
        return operator(name).call((other, self), {})

    return forward, reverse


def _unary(name, *args):
    return lambda self: operator(name).call((self,) + args, {})


def _inplace(name, scalar=None, options=None):
    def forward(self, other):
        if _is_number(other) and scalar:
            return operator(scalar).call((self, other), {}, into=self)
        if not _is_number(other) and not isinstance(other, Tensor):
            return NotImplemented
        return operator(name).call((self, other), options or {}, into=self)

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
        "lshift": _binary("bitwise_left_shift"),
        "rshift": _binary("bitwise_right_shift"),
        "matmul": _binary("matmul"),
        "mod": _binary("remainder"),
        "and": _binary("bitwise_and"),
        "or": _binary("bitwise_or"),
        "xor": _binary("bitwise_xor"),
    }
    for name, (forward, reverse) in rows.items():
        setattr(Tensor, f"__{name}__", forward)
        setattr(Tensor, f"__r{name}__", reverse)
    Tensor.__floordiv__, Tensor.__rfloordiv__ = _binary(
        "div", _floored, lambda x, n: operator("div").call((n, x), {"rounding_mode": "floor"}),
        {"rounding_mode": "floor"})
    for name in ("eq", "ne", "lt", "le", "gt", "ge"):
        setattr(Tensor, f"__{name}__", _binary(name)[0])
    Tensor.__neg__ = _unary("neg")
    Tensor.__abs__ = _unary("abs")
    Tensor.__invert__ = _unary("bitwise_not")
    Tensor.__iadd__ = _inplace("add", "add_scalar")
    Tensor.__imul__ = _inplace("mul", "mul_scalar")
    Tensor.__isub__ = _inplace("sub")
    Tensor.__itruediv__ = _inplace("div")
    Tensor.__ipow__ = _inplace("pow", "pow_scalar")
    Tensor.__imod__ = _inplace("remainder")
    Tensor.__ifloordiv__ = _inplace("div", options={"rounding_mode": "floor"})
    for name in ("and", "or", "xor"):
        setattr(Tensor, f"__i{name}__", _inplace(f"bitwise_{name}"))


_define()
