# SPDX-License-Identifier: MIT
#
# Writes numpy_text.h: arrays and their text by NumPy's str(). Run by hand, with NumPy 2:
#   python3 tests/tensor/numpy_text.py >tests/tensor/numpy_text.h
import numpy as np

np.seterr(all="ignore")
rng = np.random.default_rng(5)
f4, f8, f2 = np.float32, np.float64, np.float16
cases = []


def add(array):
    cases.append(np.ascontiguousarray(array))


for t in (f2, f4, f8):
    for values in (
        [1, 2, 3],
        [0.1, 0.25, 10.5],
        [1.5, -2.25, 100],
        [0, -0.0, 1],
        [1e-5, 1],
        [1e5 / 2, 1],
        [0.001, 999],
        [np.nan, 1, 2.5],
        [np.inf, -np.inf, 0],
        [np.nan],
        [np.inf, 1000],
        [-np.inf, 0.5],
        [1 / 3, 2 / 3],
        [1e-4, 0.1],
        [9.999e-5, 0.05],
        [-1.0],
        [12345.678, 1],
        [0.0, 0.0],
        [1e-7],
        [3.14159265358979, -2.718281828],
    ):
        with np.errstate(over="ignore"):
            add(np.array(values, t))
    for value in (0, 1, -1.5, 0.1, 1e-5, 1e-4, 123456.0, 1 / 3, np.nan, -np.inf, np.inf):
        add(np.array(value, t))
for value in (1e8, 1e15, 1e16, 1.5e16, 1e20, 123456789.0, 3.4e38, 1e-38, 0.00012345):
    for t in (f4, f8):
        add(np.array(value, t))
        add(np.array([value, 1], t))
        add(np.array([value], t))
add(np.array([1e8, 1.25e8], f4))
add(np.array([99999999, 12.5], f8))
add(np.array([1e300, 1e-300, 0], f8))
add(np.array([1.7976931348623157e308, 5e-324], f8))
add(np.array([1.1754944e-38, 1e-45], f4))
add(np.array([0.1 + 0.2, 1], f8))
for a in (
    np.array([0.1, 1.2345678e-5], f4),
    np.array([0.3, 2e-5, 1.2345678e-5], f4),
    np.array([1e-320, 1.23456789e300], f8),
    np.array([3e-45, 1.2345678, 6e-44, 1e-40], f4),
    np.array([6e-8, 1.234], f2),
    np.array([1e6, 2.5], f4),
    np.array([999999, 1000], f4),
):
    add(a)
for scale in (1e-3, 1, 1e3, 1e6):
    add((rng.standard_normal(8) * scale).astype(f4))
    add(rng.standard_normal(8) * scale)
    add((rng.standard_normal(8) * min(scale, 1e3)).astype(f2))
add(np.array([123.456789123456, 0.5], f8))
for shape in (
    (2, 3),
    (3, 1),
    (1, 1, 1),
    (2, 2, 2),
    (2, 1, 3, 2),
    (20,),
    (3, 17),
    (0,),
    (0, 3),
    (2, 0),
    (2, 0, 3),
):
    add(rng.standard_normal(shape).astype(f4))
    add(rng.standard_normal(shape))
    add((rng.standard_normal(shape) * 1000).astype(np.int32))
    add(rng.standard_normal(shape) > 0)
    add((rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(np.complex64))
for shape in (
    (1001,),
    (1000,),
    (40, 30),
    (7, 200),
    (200, 6),
    (6, 200),
    (12, 12, 12),
    (2, 600),
    (3, 4, 5, 30),
):
    add(np.arange(np.prod(shape)).reshape(shape).astype(np.int64))
    add(np.arange(np.prod(shape)).reshape(shape).astype(f4))
    add(rng.standard_normal(shape).astype(f4))
for t in (np.uint8, np.int8, np.int16, np.uint16, np.uint32, np.uint64, np.int64):
    info = np.iinfo(t)
    add(np.array([info.min, info.max, 0, 7], t))
    add(np.array(info.max, t))
add(np.array([True, True]))
add(np.array(False))
add(np.array(True))
for t in (np.complex64, np.complex128):
    add(np.array([1 + 2j, -0.5 + 1e-3j, 1j], t))
    add(np.array([complex(np.nan, 1), complex(1, np.inf)], t))
    add(np.array([complex(1, -0.0), complex(-np.inf, np.nan)], t))
    for value in (1 + 2j, 1j, -1.5j, 0, 0.1 + 1e20j, complex(np.nan, -np.inf), 1e-5 - 2j):
        add(np.array(value, t))

names = {
    "bool": "TN_BOOL",
    "uint8": "TN_U8",
    "int8": "TN_I8",
    "int16": "TN_I16",
    "int32": "TN_I32",
    "int64": "TN_I64",
    "float16": "TN_F16",
    "float32": "TN_F32",
    "float64": "TN_F64",
    "complex64": "TN_C64",
    "complex128": "TN_C128",
    "uint16": "TN_U16",
    "uint32": "TN_U32",
    "uint64": "TN_U64",
}


def quoted(text):
    return '"' + text.replace("\n", '\\n') + '"'


print(
    "/* SPDX-License-Identifier: MIT\n *\n * Made by numpy_text.py with NumPy %s: "
    "bytes of arrays (hexadecimal; counted: 0, 1, 2, ...) and their text. */"
    % np.__version__
)
print(
    "static const struct numpy_case {\n    tn_dtype dtype;\n    int ndim;\n    int64_t shape[4];\n"
    "    const char *bytes;\n    const char *text;\n} numpy_cases[] = {"
)
for a in cases:
    shape = ", ".join(str(n) for n in (a.shape + (0,) * 4)[:4])
    counted = a.size > 100 and np.array_equal(a.reshape(-1), np.arange(a.size).astype(a.dtype))
    if a.size > 900 and not counted:
        a = a.reshape(-1)
        a = np.resize(
            a[:97], cases and int(np.prod([int(n) for n in shape.split(", ") if n != "0"]))
        ).reshape([int(n) for n in shape.split(", ") if n != "0"])
        data = "repeat " + a.reshape(-1)[:97].tobytes().hex()
    else:
        data = "count" if counted else a.tobytes().hex()
    print(
        "    { %s, %d, { %s },\n      \"%s\",\n      %s },"
        % (names[a.dtype.name], a.ndim, shape, data, quoted(str(a)))
    )
print("};")
