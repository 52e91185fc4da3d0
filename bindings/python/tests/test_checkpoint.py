# SPDX-License-Identifier: MIT
"""checkpoint: the same gradients with fewer tensors, and the function runs twice."""

import gc
import unittest
import weakref

import tenon
from tenon import nn
from tenon.checkpoint import checkpoint, checkpoint_sequential


class Checkpoints(unittest.TestCase):
    def setUp(self):
        tenon.manual_seed(3)
        layers = [layer for _ in range(4) for layer in (nn.Linear(4, 4), nn.Tanh())]
        self.net = nn.Sequential(*layers)
        self.x = tenon.randn(3, 4, requires_grad=True)

    def gradients(self, call):
        """The result of a call, and the gradients of x and of all parameters."""
        self.net.zero_grad()
        self.x.grad = None
        y = call()
        (y * y).sum().backward()
        return [y.tolist(), self.x.grad.tolist()] + [p.grad.tolist() for p in self.net.parameters()]

    def test_the_gradients_are_the_same(self):
        expected = self.gradients(lambda: self.net(self.x))
        self.assertEqual(self.gradients(lambda: checkpoint(self.net, self.x)), expected)
        for segments in (1, 2, 3, 8):
            found = self.gradients(lambda: checkpoint_sequential(self.net, segments, self.x))
            self.assertEqual(found, expected)
        nested = self.gradients(lambda: checkpoint(lambda x: checkpoint(self.net, x), self.x))
        self.assertEqual(nested, expected)

    def test_the_function_runs_again_in_backward(self):
        calls = []

        def twice(x, by, *, plus):
            calls.append(tenon.is_grad_enabled())
            y = (x * by).exp()
            return {"y": (y + plus, "a text"), "n": 7}

        found = checkpoint(twice, self.x, 2.0, plus=tenon.ones(3, 4))
        self.assertEqual((found["n"], found["y"][1], calls), (7, "a text", [True]))
        found["y"][0].sum().backward()
        self.assertEqual(calls, [True, True])
        for row, gradient in zip(self.x.tolist(), self.x.grad.tolist()):
            for value, got in zip(row, gradient):
                self.assertAlmostEqual(got, 2 * tenon.tensor(2 * value).exp().item(), places=4)
        with tenon.no_grad():
            checkpoint(twice, self.x, 2.0, plus=tenon.ones(3, 4))
        self.assertEqual(calls, [True, True, False])

    def test_random_numbers_are_the_same_in_both_runs(self):
        masks = []

        def dropped(x):
            mask = tenon.rand(3, 4)
            masks.append(mask.tolist())
            return x * mask * x

        checkpoint(dropped, self.x).sum().backward()
        self.assertEqual(masks[0], masks[1])
        checkpoint(dropped, self.x, preserve_rng_state=False).sum().backward()
        self.assertNotEqual(masks[2], masks[3])

    def test_autocast_is_the_same_in_both_runs(self):
        seen = []

        def product(x):
            y = x.matmul(x.transpose(0, 1))
            seen.append(y.dtype)
            return y.exp()

        with tenon.autocast("cpu", dtype="bfloat16"):
            y = checkpoint(product, self.x)
        y.sum().backward()
        self.assertEqual(seen, ["bfloat16", "bfloat16"])

    def test_failures(self):
        def fails(x):
            raise KeyError("mine")

        with self.assertRaises(tenon.TenonError) as caught:
            checkpoint(fails, self.x)
        self.assertIsInstance(caught.exception.__cause__, KeyError)
        sizes = [1, 2]

        def changes(x):
            y = x.exp()
            return [y.exp() for _ in range(sizes.pop())][0]

        with self.assertRaisesRegex(tenon.TenonError, "different number of tensors|different meta"):
            checkpoint(changes, self.x).sum().backward()
        with self.assertRaisesRegex(ValueError, "use_reentrant: not available"):
            checkpoint(self.net, self.x, use_reentrant=True)
        for segments in (0, 9):
            with self.assertRaisesRegex(ValueError, "segments: out of range"):
                checkpoint_sequential(self.net, segments, self.x)

    def test_nothing_stays(self):
        class Marker:
            pass

        marker = Marker()
        alive = weakref.ref(marker)
        before = tenon._library.lib.tn_grad_node_count()
        y = checkpoint(lambda x, mark: x.exp(), self.x, marker)
        del marker
        gc.collect()
        self.assertIsNotNone(alive())  # for the second run
        y.sum().backward()
        del y
        gc.collect()
        self.assertIsNone(alive())
        self.assertEqual(tenon._library.lib.tn_grad_node_count(), before)


if __name__ == "__main__":
    unittest.main()
