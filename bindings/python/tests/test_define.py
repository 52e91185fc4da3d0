# SPDX-License-Identifier: MIT
"""What Python contributes: layers, operators, kernels, optimizers, observers."""

import copy
import gc
import tempfile
import unittest

import tenon
from tenon import nn, optim


class PyScaled(tenon.Layer):
    """x times a scale for each feature."""

    features = tenon.option(int, "size of the last dimension")
    start = tenon.option(1.0, "the scales at first")
    words = tenon.option("none")
    sizes = tenon.option([1, 2])
    bias = tenon.option(True)

    def build(self):
        self.scale = tenon.parameter(tenon.full([self.features], self.start))
        self.calls = 0
        if self.bias:
            self.shift = tenon.parameter(tenon.zeros(self.features))

    def forward(self, x):
        self.calls += 1
        y = x * self.scale
        return y + self.shift if self.bias else y

    def reset(self):
        with tenon.no_grad():
            self.scale.fill_(self.start)

    def extra_repr(self):
        return f"{self.features}"


class PyTwo(tenon.Layer):
    def build(self):
        self.inner = nn.Linear(2, 2)

    def forward(self, a, b=None, *, twice=False):
        y = self.inner(a) + (a if b is None else b)
        return {"sum": y * 2.0, "a": a} if twice else (y, a)


class PyFails(tenon.Layer):
    where = tenon.option("forward")

    def build(self):
        if self.where == "build":
            raise KeyError("no such thing")

    def forward(self, x):
        raise LookupError("not found")


class py_cube(tenon.Operator, inputs=["x"], outputs=["y"], save=["x"], math="y = scale x^3"):
    """The third power."""

    scale = tenon.option(1.0, "a factor")

    def infer(self, x):
        return tenon.Meta(x.shape, x.dtype)

    def derive(self, gy, x):
        return gy * x * x * (3.0 * self.scale)

    @tenon.kernel("cpu")
    def run(self, x, y):
        # Without NumPy, to be tested everywhere; outputs are contiguous.
        out = y.elements()
        for i, value in enumerate(_elements(x)):
            out[i] = self.scale * value ** 3


def _elements(view):
    """The elements of a view of any strides, row-major."""
    import ctypes

    type_ = {"float32": ctypes.c_float, "float64": ctypes.c_double}[view.dtype]

    def walk(dims, at):
        if not dims:
            yield type_.from_address(at).value
            return
        (size, stride), rest = dims[0], dims[1:]
        for i in range(size):
            yield from walk(rest, at + i * stride * ctypes.sizeof(type_))

    return walk(list(zip(view.shape, view.strides)), view.address)


class py_split(tenon.Operator, inputs=["x", "w"], outputs=["a", "b"], save=["x", "w"]):
    def infer(self, x, w):
        return tenon.Meta(x.shape, x.dtype), tenon.Meta(x.shape, x.dtype)

    def decompose(self, x, w):
        return x * w, x + w

    def derive(self, ga, gb, x, w):
        gx = gw = None
        if ga is not None:
            gx, gw = ga * w, ga * x
        if gb is not None:
            gx = gb if gx is None else gx + gb
            gw = gb if gw is None else gw + gb
        return gx, gw


class py_bad(tenon.Operator):
    def infer(self, x):
        raise OverflowError("too much")


class PySign(tenon.OptimizerRule):
    lr = tenon.option(0.125)

    def step(self, parameter, gradient, state):
        seen = state["seen"]
        state["seen"] = gradient if seen is None else seen + gradient
        parameter -= gradient.sign() * self.lr


class Layers(unittest.TestCase):
    def test_options_are_attributes(self):
        layer = PyScaled(3, 2.5, sizes=[7], bias=False)
        self.assertEqual((layer.features, layer.start, layer.words, layer.sizes, layer.bias),
                         (3, 2.5, "none", [7], False))
        self.assertEqual(layer(tenon.ones(2, 3)).tolist(), [[2.5] * 3] * 2)
        with self.assertRaises(ValueError):
            PyScaled()
        with self.assertRaises(tenon.TenonError):
            PyScaled(3, other=1)

    def test_a_spec_makes_it_and_it_is_found_again(self):
        net = tenon.Module("Sequential(PyScaled(2, start=3.0), ReLU())")
        self.assertIsInstance(net[0], PyScaled)
        self.assertEqual(net(tenon.tensor([[1.0, -1.0]])).tolist(), [[3.0, 0.0]])
        self.assertEqual(net[0].calls, 1)
        gc.collect()
        net(tenon.ones(1, 2))
        self.assertEqual(net[0].calls, 2, "attributes live as long as the module")
        self.assertIn("PyScaled(2)", repr(net))
        self.assertEqual([n for n, _ in net.named_parameters()], ["0.scale", "0.shift"])

    def test_it_trains_saves_and_loads(self):
        net = nn.Sequential(PyScaled(2), nn.Linear(2, 1))
        with tempfile.TemporaryDirectory() as folder:
            path = folder + "/net.safetensors"
            x, y = tenon.randn(16, 2), tenon.randn(16, 1)
            optimizer = optim.Adam(net, lr=0.05)
            losses = []
            for _ in range(30):
                loss = tenon.mse_loss(net(x), y)
                net.zero_grad()
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
            self.assertLess(losses[-1], losses[0])
            net.save(path)
            other = nn.Sequential(PyScaled(2), nn.Linear(2, 1)).load(path)
            self.assertEqual(other(x).tolist(), net(x).tolist())

    def test_copies_have_their_own_attributes(self):
        layer = PyScaled(2)
        layer.note = [1]
        layer.around = [layer]
        other = copy.deepcopy(layer)
        self.assertIs(other.around[0], layer, "modules among them are shared")
        del layer.around
        other.note.append(2)
        self.assertEqual((layer.note, other.note), ([1], [1, 2]))
        with tenon.no_grad():
            other.scale.fill_(5.0)
        self.assertEqual(layer.scale.tolist(), [1.0, 1.0])

    def test_several_arguments_and_results(self):
        layer = PyTwo()
        a, b = tenon.ones(1, 2), tenon.zeros(1, 2)
        y, same = layer(a, b)
        self.assertEqual(same.tolist(), a.tolist())
        named = layer(a, b, twice=True)
        self.assertEqual(sorted(named), ["a", "sum"])
        self.assertEqual(named["sum"].tolist(), (y * 2.0).tolist())
        self.assertEqual([n for n, _ in layer.named_parameters()], ["inner.weight", "inner.bias"])

    def test_dictionaries(self):
        class PyDict(tenon.Layer):
            def forward(self, given):
                return ({"twice": given["x"] * 2.0, 3: {"none": None}, "n": given["n"] + 1}, )

        results = PyDict()({"x": tenon.ones(2), "n": 4})
        self.assertIs(type(results), dict, "a tuple of one result is that result")
        self.assertEqual(results["twice"].tolist(), [2.0, 2.0])
        self.assertEqual(results[3], {"none": None})
        self.assertEqual(results["n"], 5)

    def test_exceptions_come_back(self):
        with self.assertRaises(KeyError) as caught:
            PyFails("build")
        self.assertIsInstance(caught.exception, tenon.TenonKeyError)
        self.assertIn("no such thing", str(caught.exception))
        net = nn.Sequential(nn.ReLU(), PyFails())
        with self.assertRaises(tenon.TenonError) as caught:
            net(tenon.ones(1))
        self.assertIn("not found", str(caught.exception))
        self.assertIn("1", str(caught.exception), "the path is in the message")
        self.assertIsInstance(caught.exception.__cause__, LookupError)

    def test_errors_of_operators_inside_pass_through(self):
        class PyInner(tenon.Layer):
            def forward(self, x):
                return x.reshape([7])

        with self.assertRaises(tenon.TenonRuntimeError) as caught:
            PyInner()(tenon.ones(3))
        self.assertIn("reshape", str(caught.exception))
        # Nothing is left behind: the next call works.
        self.assertEqual(tenon.ones(1).relu().tolist(), [1.0])

    def test_an_interrupt_is_an_interrupt(self):
        class PyStops(tenon.Layer):
            def forward(self, x):
                raise KeyboardInterrupt

        with self.assertRaises(KeyboardInterrupt):
            PyStops()(tenon.ones(1))

    def test_a_name_that_is_taken_is_refused(self):
        with self.assertRaises(tenon.TenonRefusedError):
            type("Linear", (tenon.Layer,), {})

    def test_modules_are_freed_with_their_attributes(self):
        from tenon import _module

        gc.collect()
        before = len(_module.states)
        nets = [nn.Sequential(PyScaled(2), PyScaled(2)) for _ in range(5)]
        self.assertEqual(len(_module.states), before + 10)
        del nets
        gc.collect()
        self.assertEqual(len(_module.states), before)


class Operators(unittest.TestCase):
    def test_kernel_and_options(self):
        x = tenon.tensor([1.0, 2.0, -3.0])
        self.assertEqual(tenon.py_cube(x).tolist(), [1.0, 8.0, -27.0])
        self.assertEqual(x.py_cube(scale=2.0).tolist(), [2.0, 16.0, -54.0])
        self.assertEqual(tenon.py_cube(tenon.ones(2, 3).transpose(0, 1)).shape, (3, 2))

    def test_gradients(self):
        x = tenon.randn(3, 2, dtype="float64", requires_grad=True)
        self.assertTrue(tenon.gradcheck(lambda x: tenon.py_cube(x, scale=0.5), x))
        self.assertTrue(tenon.gradcheck(tenon.py_cube, x, second=True))
        w = tenon.randn(3, 2, dtype="float64", requires_grad=True)
        self.assertTrue(tenon.gradcheck(lambda x, w: tenon.py_split(x, w), [x, w]))

    def test_a_wrong_derivative_is_found(self):
        class py_wrong(tenon.Operator, save=["x"]):
            def infer(self, x):
                return tenon.Meta(x.shape, x.dtype)

            def decompose(self, x):
                return x * x

            def derive(self, gy, x):
                return gy * x

        with self.assertRaises(AssertionError):
            tenon.gradcheck(tenon.py_wrong, tenon.randn(2, dtype="float64", requires_grad=True))

    def test_a_kernel_with_numpy(self):
        try:
            import numpy
        except ImportError:
            self.skipTest("no NumPy")

        class py_sin(tenon.Operator):
            def infer(self, x):
                return tenon.Meta(x.shape, x.dtype)

            @tenon.kernel("cpu", dtypes=["float64"])
            def run(self, x, y):
                y.numpy()[...] = numpy.sin(x.numpy())

        x = tenon.randn(4, 5, dtype="float64")
        self.assertEqual(tenon.py_sin(x).tolist(), numpy.sin(x.numpy()).tolist())
        with self.assertRaises(tenon.TenonNotImplementedError):
            tenon.py_sin(tenon.ones(2))

    def test_exceptions_come_back(self):
        with self.assertRaises(tenon.TenonError) as caught:
            tenon.py_bad(tenon.ones(1))
        self.assertIn("too much", str(caught.exception))
        self.assertIsInstance(caught.exception.__cause__, OverflowError)


class Optimizers(unittest.TestCase):
    def test_a_rule_in_python(self):
        p = tenon.parameter(tenon.tensor([1.0, -1.0]))
        optimizer = optim.PySign([p])
        for _ in range(2):
            optimizer.zero_grad()
            (p * p).sum().backward()
            optimizer.step()
        self.assertEqual(p.tolist(), [0.75, -0.75])
        self.assertEqual(optimizer.state(0)["seen"].tolist(), [3.75, -3.75])
        self.assertEqual((optimizer["lr"], optimizer.steps(0)), (0.125, 2))
        optimizer["lr"] = 0.5
        optimizer.step()
        self.assertEqual(p.tolist(), [0.25, -0.25])
        q = tenon.parameter(tenon.ones(1))
        optimizer.add_group([q], lr=0.25)
        self.assertEqual((optimizer.get("lr", 1), optimizer["lr"]), (0.25, 0.5))
        self.assertEqual(len(optimizer.groups), 2)
        q.sum().backward()
        optimizer.step()
        self.assertEqual((p.tolist(), q.tolist()), ([-0.25, 0.25], [0.75]))


class Observers(unittest.TestCase):
    def test_operators_and_modules(self):
        class Log(tenon.Observer):
            def __init__(self):
                self.rows = []

            def op_begin(self, event):
                self.rows.append(("begin", event.op))

            def op_end(self, event):
                self.rows.append(("end", event.op, event.status, len(event.outputs)))

            def module_end(self, event):
                self.rows.append(("module", event.path, event.module.type))

        net = nn.Sequential(nn.ReLU())
        with Log() as log:
            net(tenon.ones(2))
            with self.assertRaises(tenon.TenonError):
                tenon.ones(3).reshape([2])
        seen = list(log.rows)
        net(tenon.ones(2))
        self.assertEqual(log.rows, seen, "it is not active any more")
        self.assertIn(("begin", "relu"), seen)
        self.assertIn(("end", "relu", 0, 1), seen)
        self.assertIn(("module", "0", "ReLU"), seen)
        self.assertIn(("module", "", "Sequential"), seen)


if __name__ == "__main__":
    unittest.main()
