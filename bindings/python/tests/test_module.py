# SPDX-License-Identifier: MIT
"""Modules, states, training; lives of objects, threads."""

import copy
import gc
import json
import os
import random
import shutil
import tempfile
import threading
import unittest

import tenon
from tenon import nn, optim


class Modules(unittest.TestCase):
    def test_made_from_types_and_text(self):
        net = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2, bias=False))
        other = tenon.Module(net.spec)
        self.assertEqual(repr(net), repr(other))
        self.assertEqual([n for n, _ in net.named_parameters()],
                         ["0.weight", "0.bias", "2.weight"])
        self.assertEqual((len(net), net[2].type, net[-1].type), (3, "Linear", "Linear"))
        self.assertEqual([m.type for m in net], ["Linear", "ReLU", "Linear"])
        self.assertEqual([n for n, _ in net.named_modules()], ["", "0", "1", "2"])
        self.assertIs(net[0], net[0])
        net.append(nn.Tanh())
        self.assertEqual(len(net), 4)
        self.assertIn("Linear", dir(nn))
        with self.assertRaises(AttributeError):
            nn.NoSuchLayer
        with self.assertRaises(TypeError):
            tenon.Module(3)
        with self.assertRaises(AttributeError):
            net.no_such_slot

    def test_slots(self):
        net = nn.Linear(2, 2)
        with tenon.no_grad():
            net.weight.fill_(2.0)
        self.assertEqual(net.weight.tolist(), [[2.0, 2.0]] * 2)
        net.bias = None
        self.assertIsNone(net.bias)
        self.assertEqual(net(tenon.ones(1, 2)).tolist(), [[4.0, 4.0]])
        net.weight = tenon.parameter(tenon.ones(3, 2))
        self.assertEqual(net(tenon.ones(1, 2)).shape, (1, 3))
        with self.assertRaises(TypeError):
            net.weight = tenon.ones(3, 2)
        net.register_buffer("mean", tenon.zeros(1))
        self.assertEqual([n for n, _ in net.named_buffers()], ["mean"])
        del net.mean
        self.assertEqual(net.buffers(), [])

    def test_options(self):
        conv = nn.Conv2d(1, 1, 1, bias=False)
        self.assertEqual(conv.stride, (1,))
        conv.stride = (2, 1)
        self.assertEqual(conv.stride, (2, 1))
        self.assertEqual(conv(tenon.ones(1, 1, 4, 4)).shape, (1, 1, 2, 4))
        with self.assertRaises(ValueError):
            conv.stride = 0
        with self.assertRaises(AttributeError):
            conv.strides = 2
        loss = nn.CrossEntropyLoss(weight=[1.0, 2.0])
        self.assertEqual(loss.weight.shape, (2,))
        self.assertEqual(loss.reduction, "mean")

    def test_several_results(self):
        out, (h, cell) = nn.LSTM(3, 4)(tenon.randn(5, 2, 3))
        self.assertEqual((out.shape, h.shape, cell.shape), ((5, 2, 4), (1, 2, 4), (1, 2, 4)))

    def test_states_and_files(self):
        net, other = nn.Linear(3, 2), nn.Linear(3, 2)
        state = net.state_dict()
        self.assertEqual(sorted(state), ["bias", "weight"])
        self.assertEqual(state["weight"].data_ptr(), net.weight.data_ptr())
        other.load_state_dict(state)
        self.assertEqual(other.weight.tolist(), net.weight.tolist())
        with self.assertRaises(tenon.TenonError) as caught:
            other.load_state_dict({"weight": state["weight"]})
        self.assertIn("bias", str(caught.exception))
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "net.safetensors")
            net.save(path)
            self.assertEqual(tenon.load(path)["bias"].tolist(), net.bias.tolist())
            tenon.save(state, os.path.join(folder, "again.npz"))
            self.assertEqual(nn.Linear(3, 2).load(path).weight.tolist(), net.weight.tolist())
            with self.assertRaises(OSError):
                net.load(os.path.join(folder, "nothing"))

    def test_a_file_of_a_run_is_a_module(self):
        net = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "best.safetensors")
            net.save(path)
            self.note(path, {"tenon.spec": "Sequential(Linear(2, 3), ReLU())",
                             "tenon.classes": '["cat", "d\u00f6g", "\\"owl\\""]',
                             "tenon.transform": "ToFloat()"})
            for name in (path, folder):
                again = tenon.load(name)
                self.assertEqual(again[0].weight.tolist(), net[0].weight.tolist())
                self.assertEqual(again.classes, ["cat", "d\u00f6g", '"owl"'])
                self.assertEqual(again.transform, "ToFloat()")
            self.note(path, {"tenon.spec": "Sequential(Linear(2, 4), ReLU())"})
            with self.assertRaisesRegex(tenon.TenonError, "size mismatch for 0.weight"):
                tenon.load(path)

    def test_a_program_of_another_framework_is_a_module(self):
        path = os.path.join(os.environ.get("abs_srcdir", ""), "tests/foreign/files/onnx_net.onnx")
        if not os.path.isfile(path):
            self.skipTest("the files of the tests are not there")
        with tempfile.TemporaryDirectory() as folder:
            shutil.copy(path, os.path.join(folder, "best.onnx"))
            for name in (path, folder):
                net = tenon.load(name)
                self.assertIsInstance(net, nn.Module)
                self.assertIsNone(net.classes)
                self.assertGreater(len(list(net.parameters())), 0)

    @staticmethod
    def note(path, texts):
        """Replaces the metadata of a file of safetensors."""
        with open(path, "rb") as file:
            data = file.read()
        end = 8 + int.from_bytes(data[:8], "little")
        header = json.loads(data[8:end])
        header["__metadata__"] = texts
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        with open(path, "wb") as file:
            file.write(len(text).to_bytes(8, "little") + text + data[end:])

    def test_modes_copies_and_hooks(self):
        net = nn.Sequential(nn.Dropout(0.5), nn.Linear(2, 2))
        self.assertTrue(net.training)
        self.assertFalse(net.eval()[0].training)
        twin = copy.deepcopy(net)
        with tenon.no_grad():
            twin[1].weight.fill_(0.0)
        self.assertNotEqual(net[1].weight.tolist(), twin[1].weight.tolist())
        hook = twin.register_forward_hook(lambda module, args, result: result + 1.0)
        x = tenon.ones(1, 2)
        self.assertEqual(twin(x).tolist(), (twin[1].bias + 1.0).reshape([1, 2]).tolist())
        hook.remove()
        self.assertEqual(net.to(dtype="float64")[1].weight.dtype, "float64")
        self.assertEqual(tenon.init(tenon.empty(2), "ones").tolist(), [1.0, 1.0])


class Training(unittest.TestCase):
    def test_a_loss_falls(self):
        tenon.manual_seed(1)
        x = tenon.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
        y = tenon.tensor([0, 1, 1, 0])
        net = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 2))
        optimizer = optim.Adam(net, lr=2e-2)
        scheduler = optim.StepLR(optimizer, step_size=100, gamma=0.5)
        losses = []
        for _ in range(200):
            loss = tenon.cross_entropy(net(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
            losses.append(loss.item())
        self.assertLess(losses[-1], 0.1 * losses[0])
        self.assertEqual(net(x).argmax(dim=1).tolist(), y.tolist())
        self.assertAlmostEqual(optimizer["lr"], 5e-3)
        self.assertEqual(optimizer.steps(0), 200)
        self.assertEqual(sorted(optimizer.state(0)), ["exp_avg", "exp_avg_sq"])

    def test_a_state_resumes_and_a_closure_returns_the_loss(self):
        x, y = tenon.tensor([[0.0, 1.0], [1.0, 0.0]]), tenon.tensor([0, 1])
        net = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 2))
        twin = net.copy()
        first, second = optim.Adam(net, lr=0.1), optim.Adam(twin.named_parameters(), lr=9.0)

        def closure():
            first.zero_grad(set_to_none=False)
            loss = tenon.cross_entropy(net(x), y)
            loss.backward()
            return loss

        losses = [first.step(closure).item() for _ in range(3)]
        self.assertLess(losses[2], losses[0])
        state = first.state_dict()
        self.assertEqual(state["state"][0]["step"].item(), 3.0)
        self.assertEqual(state["param_groups"][0]["betas"], (0.9, 0.999))
        self.assertEqual(state["param_groups"][0]["param_names"][3], "1.bias")
        self.assertIs(first.param_groups[0]["params"][0], net[0].weight)
        second.load_state_dict(state)
        twin.load_state_dict(net.state_dict())
        first.step(closure)
        tenon.cross_entropy(twin(x), y).backward()
        second.step()
        self.assertEqual(net[0].weight.tolist(), twin[0].weight.tolist())
        with self.assertRaisesRegex(ValueError, "different number of parameter groups"):
            second.load_state_dict({"state": {}, "param_groups": []})

        def fails():
            raise ZeroDivisionError("no loss")

        with self.assertRaises(tenon.TenonError) as caught:
            first.step(fails)
        self.assertIsInstance(caught.exception.__cause__, ZeroDivisionError)

    def test_wrong_options_are_refused(self):
        net = nn.Linear(1, 1)
        with self.assertRaises(ValueError):
            optim.Adam(net, lr=-1.0)
        with self.assertRaises(tenon.TenonError):
            optim.SGD(net, lr=0.1, speed=2)
        with self.assertRaises(AttributeError):
            optim.NoSuchRule


class Lives(unittest.TestCase):
    def test_any_order(self):
        """Graphs, modules, optimizers, states, arrays: dropped in any order."""
        for seed in range(8):
            net = nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 1))
            x = tenon.randn(3, 2, requires_grad=True)
            loss = net(x).sum()
            objects = [net, x, loss, net[0], net[0].weight, optim.SGD(net, lr=0.1),
                       net.state_dict(), loss.detach(), x.transpose(0, 1), net.parameters()]
            objects.append(optim.StepLR(objects[5], step_size=1))
            loss.backward()
            objects.append(x.grad)
            del net, x, loss
            random.Random(seed).shuffle(objects)
            while objects:
                objects.pop()
                gc.collect(0)

    def test_memory_comes_back(self):
        import ctypes
        from tenon import _api
        from tenon._library import check, lib

        def live():
            gc.collect()
            stats = _api.tn_memory_stats()
            check(lib.tn_device_memory(lib.tn_device_find(b"cpu"), ctypes.byref(stats)))
            return stats.live, lib.tn_grad_node_count()

        def work():
            net = nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 8))
            optimizer = optim.Adam(net, lr=0.1)
            net(tenon.randn(32, 64)).sum().backward()
            optimizer.step()
            with self.assertRaises(tenon.TenonError):
                net(tenon.ones(3, 3))

        work()
        before = live()
        for _ in range(5):
            work()
        self.assertEqual(live(), before)

    def test_the_end_of_the_process(self):
        """With everything alive, hooks and layers of Python included, and threads that compute."""
        import subprocess
        import sys
        program = """
import sys, threading, time, tenon
from tenon import nn, optim
class Last(tenon.Layer):
    def build(self):
        self.w = tenon.parameter(tenon.ones(2))
    def forward(self, x):
        return x * self.w
class Count(tenon.Observer):
    def op_end(self, event):
        self.last = event
count = Count().__enter__()
net = nn.Sequential(Last(), nn.ReLU())
x = tenon.ones(2, requires_grad=True)
y = net(x).sum()
y.register_hook(lambda g: g)
y.backward()
optimizer = optim.Adam(net, lr=0.1)
capsule = x.detach().__dlpack__()
net[0].circle = [net, optimizer]
def work():
    while True:
        net(x)
if sys.argv[1] == "threads":
    for _ in range(3):
        threading.Thread(target=work, daemon=True).start()
    time.sleep(0.1)
"""
        for words in ("alone", "threads"):
            done = subprocess.run([sys.executable, "-c", program, words], capture_output=True,
                                  text=True, timeout=60)
            self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_threads(self):
        net = nn.Sequential(nn.Linear(8, 8), nn.ReLU())
        x = tenon.randn(4, 8)
        want = net(x).tolist()
        failed = []

        def work(number):
            try:
                for i in range(50):
                    with tenon.no_grad():
                        if net(x).tolist() != want:
                            failed.append("another result")
                    y = tenon.ones(number + 1, requires_grad=True)
                    (y * y).sum().backward()
                    if y.grad.tolist() != [2.0] * (number + 1):
                        failed.append("another gradient")
                    try:
                        tenon.ones(2).reshape([number + 3])
                        failed.append("no error")
                    except tenon.TenonError as error:
                        if f"[{number + 3}]" not in str(error):
                            failed.append("the error of another thread")
            except BaseException as error:
                failed.append(repr(error))

        threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failed, [])

    def test_addresses_used_again(self):
        """Threads end objects while others make them at the same addresses: none meets another's.
        With a short turn, as threads change in the middle of an end."""
        import sys
        import time
        failed = []

        class Twice(tenon.Layer):
            def forward(self, x):
                return x * self.factor

            def build(self):
                self.factor = tenon.parameter(tenon.full([1], 2.0))

        class Last(tenon.Observer):
            def op_end(self, event):
                self.last = event  # so a thread ends the objects of another

        shared = nn.Sequential(Twice(), nn.ReLU())

        def work(number):
            x = tenon.tensor([float(number)], requires_grad=True)
            try:
                while time.monotonic() < end and not failed:
                    for _ in range(20):
                        shared(x)
                    if shared(x).tolist() != [2.0 * number]:
                        failed.append("the tensor of another thread")
                    if nn.Linear(number + 1, 1).weight.shape != (1, number + 1):
                        failed.append("the module of another thread")
            except BaseException as error:
                failed.append(repr(error))

        end = time.monotonic() + 1
        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        with Last():
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        self.assertEqual(failed, [])

    def test_a_collected_cycle_reads_its_tensors(self):
        """Python ends the objects of a cycle in any order: a __del__ finds its tensors alive."""
        import gc
        read, again = [], []

        class Holder:
            def __init__(self):
                self.circle = self
                self.tensors = [tenon.full([2], float(i)) for i in range(8)]
                self.net = nn.Linear(2, 1)

            def __del__(self):
                read.append([t.tolist() for t in self.tensors])
                read.append(self.net(tenon.zeros(1, 2)).shape)
                again.append(self.tensors[3])  # stays after its holder

        holder = Holder()
        pointer = holder.tensors[3].data_ptr()
        del holder
        gc.collect()
        self.assertEqual(read, [[[float(i)] * 2 for i in range(8)], (1, 1)])
        filled = [tenon.full([2], -1.0) for _ in range(32)]  # would take freed memory
        self.assertEqual((again[0].data_ptr(), again[0].tolist()), (pointer, [3.0, 3.0]))
        self.assertEqual(len(filled), 32)


if __name__ == "__main__":
    unittest.main()
