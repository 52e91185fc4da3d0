# SPDX-License-Identifier: MIT
"""GradScaler: its rules, its errors, and the factors and weights of PyTorch's."""

import math
import unittest

import tenon
from tenon import amp, nn, optim

try:
    import torch
except ImportError:
    torch = None

SCALES = [1.0, 2.0, math.inf, 3.0, 4.0, 5.0, math.nan, 6.0, 7.0, 8.0]  # of the loss of each step


def scaled(**options):
    """Takes a step for each number of SCALES; returns the factors, and the weights at the end."""
    net = nn.Linear(2, 1, bias=False)
    with tenon.no_grad():
        net.weight.copy_(tenon.tensor([[0.5, -0.25]]))
    optimizer = optim.SGD(net, lr=0.1, momentum=0.9)
    scaler, factors = amp.GradScaler("cpu", **options), []
    for number in SCALES:
        optimizer.zero_grad()
        scaler.scale((net(tenon.tensor([[1.0, 2.0]])) * number).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        factors.append(scaler.get_scale())
    return factors, net.weight.tolist()


OPTIONS = {"init_scale": 8.0, "growth_factor": 3.0, "backoff_factor": 0.25, "growth_interval": 2}


class Scaler(unittest.TestCase):
    def setUp(self):
        self.net = nn.Linear(2, 1, bias=False)
        self.optimizer = optim.SGD(self.net, lr=1.0)
        self.scaler = amp.GradScaler("cpu", **OPTIONS)

    def backward(self, number=1.0):
        self.optimizer.zero_grad()
        self.scaler.scale((self.net(tenon.tensor([[1.0, 2.0]])) * number).sum()).backward()

    def test_grows_after_good_steps_and_shrinks_after_a_bad_one(self):
        factors, weights = scaled(**OPTIONS)
        self.assertEqual(factors, [8.0, 24.0, 6.0, 6.0, 18.0, 18.0, 4.5, 4.5, 13.5, 13.5])
        weight, speed = 0.5, 0.0
        for number in SCALES:  # the steps with inf and nan are left out
            if math.isfinite(number):
                speed = 0.9 * speed + number
                weight -= 0.1 * speed
        self.assertAlmostEqual(weights[0][0], weight, places=4)

    @unittest.skipIf(torch is None, "no PyTorch")
    def test_does_what_pytorch_does(self):
        net = torch.nn.Linear(2, 1, bias=False)
        with torch.no_grad():
            net.weight.copy_(torch.tensor([[0.5, -0.25]]))
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
        scaler, factors = torch.amp.GradScaler("cpu", **OPTIONS), []
        for number in SCALES:
            optimizer.zero_grad()
            scaler.scale((net(torch.tensor([[1.0, 2.0]])) * number).sum()).backward()
            scaler.step(optimizer)
            scaler.update()
            factors.append(scaler.get_scale())
        found, weights = scaled(**OPTIONS)
        self.assertEqual(found, factors)
        for a, b in zip(weights[0], net.weight.tolist()[0]):
            self.assertAlmostEqual(a, b, places=5)
        self.scaler.load_state_dict(scaler.state_dict())
        self.assertEqual(self.scaler.state_dict(), scaler.state_dict())

    def test_unscales_before_clipping_and_takes_the_step_once(self):
        self.backward()
        self.assertEqual(self.net.weight.grad.tolist(), [[8.0, 16.0]])
        self.scaler.unscale_(self.optimizer)
        self.assertEqual(self.net.weight.grad.tolist(), [[1.0, 2.0]])
        before = self.net.weight.tolist()[0]
        self.scaler.step(self.optimizer)
        for i in range(2):
            self.assertAlmostEqual(self.net.weight.tolist()[0][i], before[i] - i - 1, places=5)
        with self.assertRaisesRegex(RuntimeError, "step.. has already been called"):
            self.scaler.step(self.optimizer)
        with self.assertRaisesRegex(RuntimeError, "called after step"):
            self.scaler.unscale_(self.optimizer)
        self.scaler.update()
        self.scaler.update(64.0)
        self.assertEqual(self.scaler.get_scale(), 64.0)

    def test_what_is_wrong_has_pytorchs_words(self):
        for name in ("unscale_", "step"):
            with self.assertRaisesRegex(AssertionError, f"Attempted {name} but _scale is None"):
                getattr(self.scaler, name)(self.optimizer)
        with self.assertRaisesRegex(AssertionError, "Attempted update but _scale is None"):
            self.scaler.update()
        self.backward()
        with self.assertRaisesRegex(AssertionError, "No inf checks were recorded"):
            self.scaler.update()
        self.scaler.unscale_(self.optimizer)
        with self.assertRaisesRegex(RuntimeError, "already been called on this optimizer"):
            self.scaler.unscale_(self.optimizer)
        with self.assertRaisesRegex(RuntimeError, "Closure use is not currently supported"):
            self.scaler.step(self.optimizer, lambda: None)
        with self.assertRaisesRegex(ValueError, "outputs must be a Tensor or an iterable"):
            self.scaler.scale(1.0)
        with self.assertRaisesRegex(RuntimeError, "The source state dict is empty"):
            self.scaler.load_state_dict({})
        with self.assertRaisesRegex(ValueError, "growth factor must be > 1.0"):
            amp.GradScaler(growth_factor=1.0)
        with self.assertRaisesRegex(ValueError, "backoff factor must be < 1.0"):
            amp.GradScaler(backoff_factor=1.0)
        half = nn.Linear(2, 1, bias=False).to(dtype="float16")
        half.weight.grad = tenon.ones(1, 2, dtype="float16")
        with self.assertRaisesRegex(ValueError, "Attempting to unscale FP16 gradients"):
            self.scaler.unscale_(optim.SGD(half, lr=1.0))

    def test_a_disabled_one_does_nothing(self):
        scaler = amp.GradScaler("cpu", enabled=False)
        loss = self.net(tenon.tensor([[1.0, 2.0]])).sum()
        self.assertIs(scaler.scale(loss), loss)
        loss.backward()
        before = self.net.weight.tolist()[0][0]
        scaler.unscale_(self.optimizer)
        scaler.step(self.optimizer)
        scaler.update()
        self.assertAlmostEqual(self.net.weight.tolist()[0][0], before - 1, places=5)
        self.assertEqual((scaler.get_scale(), scaler.state_dict()), (1.0, {}))

    def test_the_settings_and_lists(self):
        scaler = self.scaler
        scaler.set_growth_factor(2.0)
        scaler.set_backoff_factor(0.5)
        scaler.set_growth_interval(1)
        self.assertEqual((scaler.get_growth_factor(), scaler.get_backoff_factor(),
                          scaler.get_growth_interval(), scaler.is_enabled()), (2.0, 0.5, 1, True))
        first, second = scaler.scale([tenon.ones(1), tenon.ones(2)])
        self.assertEqual((first.tolist(), second.tolist()), ([8.0], [8.0, 8.0]))

    def test_trains_in_float16(self):
        tenon.manual_seed(1)
        net = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 2))
        optimizer = optim.Adam(net, lr=2e-2)
        scaler = amp.GradScaler("cpu")
        x = tenon.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
        y = tenon.tensor([0, 1, 1, 0])
        for _ in range(200):
            optimizer.zero_grad()
            with amp.autocast("cpu", dtype="float16"):
                loss = tenon.cross_entropy(net(x), y)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        self.assertLess(loss.item(), 0.1)
        self.assertEqual(net[0].weight.dtype, "float32")


if __name__ == "__main__":
    unittest.main()
