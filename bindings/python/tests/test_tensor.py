# SPDX-License-Identifier: MIT
"""Tensors, operators by name, errors, scopes."""

import math
import unittest

import tenon


class Autocast(unittest.TestCase):
    def test_regions_nest(self):
        x = tenon.ones(2, 2)
        with tenon.autocast("cpu", dtype=tenon.float16):
            self.assertTrue(tenon.is_autocast_enabled("cpu"))
            self.assertEqual(x.matmul(x).dtype, "float16")
            with tenon.autocast("cpu", cache_enabled=False):
                self.assertEqual(x.matmul(x).dtype, "bfloat16")
            with tenon.autocast("cpu", enabled=False):
                self.assertEqual(x.matmul(x).dtype, "float32")
        self.assertFalse(tenon.is_autocast_enabled("cpu"))
        self.assertEqual(x.matmul(x).dtype, "float32")


class Values(unittest.TestCase):
    def test_numbers_keep_their_digits(self):
        x = tenon.tensor([1.0], dtype="float64")
        self.assertEqual((x / 0.3).item(), 1.0 / 0.3)
        self.assertEqual(tenon.ones(1).div(0.3).dtype, "float32")

    def test_lists_in_and_out(self):
        for data, dtype in (([[1, 2], [3, 4]], "int64"), ([1.5, -2.0], "float32"),
                            ([True, False], "bool"), ([1 + 2j], "complex64"), (7, "int64"),
                            ([[], []], "float32")):
            x = tenon.tensor(data)
            self.assertEqual((x.tolist(), x.dtype), (data, dtype))
        self.assertEqual(tenon.tensor(2 ** 62 + 1).item(), 2 ** 62 + 1)
        self.assertEqual(tenon.tensor([1, 2], dtype="bfloat16").tolist(), [1.0, 2.0])
        self.assertEqual(tenon.tensor([1, 2], dtype=tenon.float64).dtype, tenon.float64)
        with self.assertRaises(ValueError):
            tenon.tensor([[1, 2], [3]])

    def test_numbers_keep_their_kind(self):
        big = 2 ** 53 + 1
        x = tenon.full([2], big, dtype="int64")
        self.assertEqual(x.tolist(), [big, big])
        self.assertEqual((x + big).tolist(), [2 * big, 2 * big])
        self.assertEqual((x * 3)[0].item(), 3 * big)
        self.assertEqual(x.clamp(max=big - 1).tolist(), [big - 1, big - 1])
        self.assertEqual(tenon.add(x, x, alpha=-big)[0].item(), -2 ** 53)
        y = tenon.full([2], 1.5, dtype="float64") * (2 - 3j)
        self.assertEqual(y.tolist(), [3 - 4.5j, 3 - 4.5j])
        self.assertEqual((y + 1j)[0].item(), 3 - 3.5j)
        self.assertEqual(y.fill_(1j).tolist(), [1j, 1j])
        with self.assertRaises(Exception):
            tenon.full([2], 1.5).fill_(1j)
        self.assertIs(tenon.tensor([True, False])[0].item(), True)
        with self.assertRaises(TypeError):
            tenon.full([2], "1")

    def test_properties(self):
        x = tenon.zeros(2, 3)
        self.assertEqual((x.shape, x.ndim, x.numel(), len(x), x.strides), ((2, 3), 2, 6, 2, (3, 1)))
        self.assertEqual(x.transpose(0, 1).strides, (1, 3))
        self.assertEqual(x.device, "cpu:0")
        self.assertEqual(repr(tenon.tensor([1.0])), "tensor([1.])")

    def test_indices(self):
        x = tenon.tensor([[0, 1, 2], [3, 4, 5]])
        self.assertEqual(x[1].tolist(), [3, 4, 5])
        self.assertEqual(x[1, 2].item(), 5)
        self.assertEqual(x[:, 1:].tolist(), [[1, 2], [4, 5]])
        self.assertEqual(x[..., -1].tolist(), [2, 5])
        self.assertEqual(x[None, 0].shape, (1, 3))
        self.assertEqual(x[x > 3].tolist(), [4, 5])
        self.assertEqual(x[tenon.tensor([1, 0])].tolist(), [[3, 4, 5], [0, 1, 2]])
        x[0, 1:] = [7, 8]
        self.assertEqual(x.tolist(), [[0, 7, 8], [3, 4, 5]])
        self.assertEqual([r.tolist() for r in x], x.tolist())
        with self.assertRaises(IndexError):
            x[2]

    def test_arithmetic(self):
        x = tenon.tensor([1.0, 2.0])
        self.assertEqual((x + 1).tolist(), [2.0, 3.0])
        self.assertEqual((1 - x).tolist(), [0.0, -1.0])
        self.assertEqual((2 / x).tolist(), [2.0, 1.0])
        self.assertEqual((x / 2).tolist(), [0.5, 1.0])
        self.assertEqual((x ** 2).tolist(), [1.0, 4.0])
        self.assertEqual((2 ** x).tolist(), [2.0, 4.0])
        self.assertEqual((x * x - x).tolist(), [0.0, 2.0])
        self.assertEqual((-x).tolist(), [-1.0, -2.0])
        self.assertEqual(abs(-x).tolist(), [1.0, 2.0])
        self.assertEqual((x @ x).item(), 5.0)
        self.assertEqual((x > 1).tolist(), [False, True])
        self.assertEqual((x == x).tolist(), [True, True])
        self.assertEqual((tenon.tensor([1, 2]) + 1).dtype, "int64")
        x += 1
        x *= 2
        self.assertEqual(x.tolist(), [4.0, 6.0])
        with self.assertRaises(TypeError):
            x + "text"

    def test_numbers_promote_by_their_kind(self):
        x = tenon.tensor([200, 100], dtype="uint8")
        for y, dtype, values in ((x * 2, "uint8", [144, 200]), (x * 2.0, "float32", [400, 200]),
                                 (x ** 2.0, "float32", [40000, 10000]),
                                 (2.0 - x, "float32", [-198, -98]), (2 - x, "uint8", [58, 158]),
                                 (x - 2.0, "float32", [198, 98]), (x + True, "uint8", [201, 101]),
                                 (tenon.arange(2), "int64", [0, 1]),
                                 (tenon.arange(2.0), "float32", [0, 1])):
            self.assertEqual((y.dtype, y.tolist()), (dtype, values))
        with self.assertRaises(tenon.TenonError):
            x *= 2.0

    def test_numbers_beside_tensors_without_dimensions(self):
        for dtype in ("uint8", "int16", "float16", "bfloat16", "float64"):
            x, one = tenon.tensor(7, dtype=dtype), tenon.tensor([7], dtype=dtype)
            for function in (lambda x: x / 3, lambda x: x % 3, lambda x: tenon.fmod(x, 300),
                             lambda x: 2 ** x, lambda x: x / 3.0, lambda x: x < 300,
                             lambda x: tenon.div(x, 2, rounding_mode="floor"), lambda x: 9 - x,
                             lambda x: tenon.xlogy(x, 2.0), lambda x: 9.5 - x):
                y = function(x)
                self.assertEqual((y.shape, y.dtype), ((), function(one).dtype))
                self.assertEqual([y.item()], function(one).tolist())

    def test_halves_are_divided_by_numbers_that_they_cannot_hold(self):
        x = tenon.tensor([32768.0, 1.0], dtype="float16", requires_grad=True)
        y = x / 65536
        self.assertEqual((y.dtype, y.tolist()), ("float16", [0.5, 2.0 ** -16]))
        y.sum().backward()
        self.assertEqual((x.grad.dtype, x.grad.tolist()), ("float16", [2.0 ** -16] * 2))

    def test_other_makers(self):
        self.assertEqual(tenon.arange(4).tolist(), [0, 1, 2, 3])
        self.assertEqual(tenon.full([2], 3, dtype="int32").tolist(), [3, 3])
        tenon.manual_seed(3)
        a = tenon.randn(1000)
        tenon.manual_seed(3)
        self.assertEqual(a.tolist(), tenon.randn(1000).tolist())
        self.assertLess(abs(a.mean().item()), 0.2)
        self.assertTrue(((tenon.rand(100) - 0.5).abs() <= 0.5).all().item())


class Operators(unittest.TestCase):
    def test_functions_methods_and_options(self):
        x = tenon.tensor([[1.0, 5.0, 3.0]])
        self.assertEqual(tenon.sum(x, dims=[1]).tolist(), [9.0])
        self.assertEqual(x.sum([1], True).shape, (1, 1))
        values, indices = tenon.topk(x, 2)
        self.assertEqual((values.tolist(), indices.tolist()), ([[5.0, 3.0]], [[1, 2]]))
        self.assertEqual(tenon.cat([x, x], dim=0).shape, (2, 3))
        self.assertEqual(x.clamp(max=2.0).tolist(), [[1.0, 2.0, 2.0]])
        self.assertEqual(x.clamp(min=None, max=2).tolist(), [[1.0, 2.0, 2.0]])
        self.assertTrue(math.isclose(x.gelu(approximate="tanh")[0, 0].item(), 0.8412, abs_tol=1e-3))
        y = tenon.empty(1, 3)
        self.assertIs(tenon.relu(-x, out=y), y)
        self.assertEqual(y.tolist(), [[0.0] * 3])
        self.assertIs(x.neg_(), x)
        self.assertEqual(x[0, 0].item(), -1.0)

    def test_what_is_wrong_is_said(self):
        x = tenon.ones(2)
        for call, words in (
                (lambda: tenon.relu(), "x: missing"),
                (lambda: tenon.relu(x, x), "too many"),
                (lambda: tenon.relu(x, slope=1), "slope: no such argument"),
                (lambda: tenon.sum(x, x=x), "given twice"),
                (lambda: tenon.narrow(x, 0), "start: missing"),
                (lambda: tenon.sum(x, keepdim=None), "None is not accepted"),
                (lambda: tenon.narrow(x, 0.5, 0, 1), "dim: wrong type, got 0.5; expected"),
                (lambda: tenon.gelu(x, approximate=3), "approximate: wrong type, got 3; expected"),
                (lambda: tenon.relu("x"), "expected a Tensor")):
            with self.assertRaises(TypeError) as caught:
                call()
            self.assertIn(words, str(caught.exception))
        with self.assertRaises(AttributeError):
            tenon.no_such_operator
        with self.assertRaises(AttributeError):
            x.no_such_operator

    def test_every_operator_is_described(self):
        from tenon import _api, _ops
        for name in _api.OPERATORS:
            found = _ops.Operator(name)
            inputs, outputs, options, _, _ = _api.OPERATORS[name]
            self.assertEqual(tuple(n for n, _ in found.inputs), inputs)
            self.assertEqual(tuple(found.outputs), outputs)
            self.assertEqual([(n, row[3]) for n, row in found.options.items()],
                             [(n, default) for n, _, default, _ in options])
            self.assertTrue(found.math or not inputs)


class Errors(unittest.TestCase):
    def test_classes(self):
        self.assertTrue(issubclass(tenon.TenonValueError, ValueError))
        self.assertTrue(issubclass(tenon.TenonDeviceError, tenon.TenonError))
        with self.assertRaises(tenon.TenonIndexError) as caught:
            tenon.ones(2).select(5, 0)
        self.assertIsInstance(caught.exception, IndexError)
        self.assertEqual((caught.exception.code, caught.exception.plugin), (6, "tenon.ops"))
        self.assertIn("select", str(caught.exception))
        with self.assertRaises(tenon.TenonError):
            tenon.Module("NoSuchLayer()")
        with self.assertRaises(tenon.TenonError):
            tenon.device("nothing:0")
        with self.assertRaises(tenon.TenonValueError):
            tenon.zeros(1, dtype="float33")
        with self.assertRaises(TypeError):
            tenon.Tensor()

    def test_a_failure_is_forgotten(self):
        from tenon._library import lib
        with self.assertRaises(tenon.TenonError):
            tenon.ones(2).reshape([3])
        self.assertFalse(lib.tn_failed())


class Gradients(unittest.TestCase):
    def test_backward(self):
        x = tenon.tensor([1.0, 2.0], requires_grad=True)
        self.assertIsNone(x.grad)
        (x * x).sum().backward()
        self.assertEqual(x.grad.tolist(), [2.0, 4.0])
        self.assertIs(x.grad, x.grad)
        (x * 3.0).backward(tenon.ones(2))
        self.assertEqual(x.grad.tolist(), [5.0, 7.0])
        x.grad = None
        self.assertIsNone(x.grad)
        with self.assertRaises(tenon.TenonError):
            (x * x).backward()

    def test_grad_and_higher_derivatives(self):
        x = tenon.tensor(2.0, requires_grad=True)
        (first,) = tenon.grad(x ** 3, x, create_graph=True)
        (second,) = tenon.grad(first, x)
        self.assertEqual((first.item(), second.item()), (12.0, 12.0))
        y = tenon.tensor(1.0, requires_grad=True)
        self.assertEqual(tenon.grad(x * 2.0, [y], allow_unused=True), (None,))

    def test_modes(self):
        x = tenon.ones(1, requires_grad=True)
        with tenon.no_grad():
            self.assertFalse(tenon.is_grad_enabled())
            self.assertFalse((x * x).requires_grad)
            with tenon.enable_grad():
                self.assertTrue((x * x).requires_grad)
        self.assertTrue((x * x).requires_grad)
        self.assertFalse(tenon.no_grad()(lambda: x * x)().requires_grad)
        with tenon.inference_mode():
            self.assertFalse((x * x).requires_grad)

    def test_hooks(self):
        x = tenon.ones(2, requires_grad=True)
        hook = x.register_hook(lambda g: g * 10.0)
        (x * 2.0).sum().backward()
        self.assertEqual(x.grad.tolist(), [20.0, 20.0])
        self.assertTrue(hook.remove())
        self.assertFalse(hook.remove())
        x.register_hook(lambda g: 1 // 0)
        with self.assertRaises(tenon.TenonError) as caught:
            (x * 2.0).sum().backward()
        self.assertIsInstance(caught.exception.__cause__, ZeroDivisionError)


class Devices(unittest.TestCase):
    def test_the_device_of_a_block(self):
        self.assertIn("meta:0", tenon.devices())
        with tenon.device("meta"):
            x = tenon.zeros(3)
            self.assertEqual(x.device, "meta:0")
            self.assertEqual((x * x).shape, (3,))
        self.assertEqual(tenon.zeros(1).device, "cpu:0")
        with self.assertRaises(tenon.TenonError):
            x.tolist()
        self.assertEqual(tenon.zeros(1).to("meta").device, "meta:0")
        tenon.synchronize()


class Numbers(unittest.TestCase):
    def test_numbers_beyond_int64(self):
        """They are refused: ctypes would keep their low 64 bits."""
        for call in (lambda: tenon.ones(2 ** 64 + 4), lambda: tenon.ones(2).select(0, 2 ** 64),
                     lambda: tenon.nn.Linear(2 ** 64 + 4, 2), lambda: tenon.ones(-2 ** 63 - 1)):
            with self.assertRaisesRegex(OverflowError, "does not fit into int64"):
                call()


if __name__ == "__main__":
    unittest.main()
