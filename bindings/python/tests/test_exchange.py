# SPDX-License-Identifier: MIT
"""The same memory in Tenon, NumPy and PyTorch: pointers are compared."""

import gc
import sys
import unittest

import tenon

try:
    import numpy
except ImportError:
    numpy = None
try:
    import torch
except ImportError:
    torch = None


@unittest.skipUnless(numpy, "this Python has no NumPy")
class NumPy(unittest.TestCase):
    def test_no_copies(self):
        for dtype in ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32",
                      "float64", "complex64", "complex128", "uint16", "uint32", "uint64"):
            array = numpy.ones((3, 4), dtype)
            x = tenon.from_numpy(array)
            self.assertEqual((x.dtype, x.shape), (dtype, (3, 4)))
            self.assertEqual(x.data_ptr(), array.ctypes.data)
            back = x.numpy()
            self.assertEqual(back.ctypes.data, array.ctypes.data)
            self.assertEqual(back.dtype, array.dtype)
            array[1, 2] = 0
            self.assertEqual(x.numpy()[1, 2], 0)

    def test_strides(self):
        array = numpy.arange(24.0).reshape(4, 6)
        x = tenon.from_numpy(array[1:, ::2].T)
        self.assertEqual((x.shape, x.strides), ((3, 3), (2, 6)))
        self.assertEqual(x.tolist(), array[1:, ::2].T.tolist())
        y = tenon.arange(6).reshape([2, 3]).transpose(0, 1)
        self.assertEqual(y.numpy().tolist(), y.tolist())
        self.assertEqual(tenon.from_numpy(numpy.float32(2.5) * numpy.ones(())).item(), 2.5)

    def test_what_is_no_tensor_is_refused(self):
        with self.assertRaises(ValueError):
            tenon.from_numpy(numpy.arange(3)[::-1])
        with self.assertRaises(TypeError):
            tenon.from_numpy(numpy.array(["a"]))
        with self.assertRaises(TypeError):
            tenon.from_numpy(numpy.zeros(2, "M8[D]"))
        frozen = numpy.ones(2)
        frozen.flags.writeable = False
        with self.assertRaises(ValueError):
            tenon.from_numpy(frozen)
        self.assertEqual(tenon.tensor(numpy.arange(3)[1:]).tolist(), [1, 2])
        with self.assertRaises(TypeError):
            tenon.ones(2, requires_grad=True).numpy()
        with self.assertRaises(TypeError):
            tenon.ones(2, dtype="bfloat16").numpy()

    def test_each_keeps_the_other(self):
        array = numpy.ones(1000)
        before = sys.getrefcount(array)
        x = tenon.from_numpy(array)
        y = x[10:]
        del x
        gc.collect()
        self.assertGreater(sys.getrefcount(array), before)
        self.assertEqual(y.sum().item(), 990.0)
        del y
        gc.collect()
        self.assertEqual(sys.getrefcount(array), before)
        kept = tenon.full([1000], 3.0).numpy()
        gc.collect()
        self.assertEqual(kept.sum(), 3000.0)

    def test_dlpack(self):
        x = tenon.arange(6).reshape([2, 3])
        array = numpy.from_dlpack(x)
        self.assertEqual(array.ctypes.data, x.data_ptr())
        y = tenon.from_dlpack(numpy.ones(3))
        self.assertEqual(y.tolist(), [1.0] * 3)
        for _ in range(3):
            x.__dlpack__()  # nobody takes it
        for i in range(3):
            with self.assertRaisesRegex(ZeroDivisionError, "division by zero"):
                (tenon.ones(2).__dlpack__(), i / 0)  # freed while an exception passes
        with self.assertRaises(TypeError):
            tenon.from_dlpack(3)

    def test_a_copy_of_any_array(self):
        """tenon.tensor copies, so memory that cannot be shared is no reason to fail."""
        array = numpy.arange(6.0).reshape(2, 3)
        self.assertEqual(tenon.tensor(array[:, ::-1]).tolist(), [[2.0, 1.0, 0.0], [5.0, 4.0, 3.0]])
        array.flags.writeable = False
        made = tenon.tensor(array)
        made.fill_(1.0)
        self.assertEqual(array[1, 2], 5.0)
        with self.assertRaisesRegex(ValueError, "read-only"):
            tenon.from_numpy(array)

    def test_capsules_that_nobody_takes(self):
        """Their tensors end with the next export; a capsule that is held stays."""
        from tenon import _dlpack
        held = tenon.full([3], 7.0).__dlpack__()
        for _ in range(100):
            tenon.full([3], 1.0).__dlpack__()
        self.assertLess(len(_dlpack._exported), 5)
        self.assertEqual(tenon.from_dlpack(held).tolist(), [7.0] * 3)

    def test_arithmetic_with_arrays(self):
        x = tenon.ones(2)
        with self.assertRaises(TypeError):
            x * "a"
        with self.assertRaises(TypeError):
            numpy.ones(2) * x  # tenon.from_numpy(array) * x
        self.assertEqual((numpy.float32(3.0).item() * x).tolist(), [3.0, 3.0])


@unittest.skipUnless(torch, "this Python has no PyTorch")
class PyTorch(unittest.TestCase):
    def test_no_copies(self):
        for dtype in ("uint8", "int64", "float16", "bfloat16", "float32", "float64", "complex64",
                      "bool"):
            source = torch.ones(3, 4).to(getattr(torch, dtype))
            x = tenon.from_dlpack(source.t())
            self.assertEqual((x.dtype, x.shape, x.strides), (dtype, (4, 3), (1, 4)))
            self.assertEqual(x.data_ptr(), source.data_ptr())
            back = torch.from_dlpack(x)
            self.assertEqual(back.data_ptr(), source.data_ptr())
            self.assertEqual(back.dtype, source.dtype)
            source[2, 1] = 0
            self.assertEqual(back[1, 2].item(), 0)

    def test_each_keeps_the_other(self):
        kept = torch.from_dlpack(tenon.full([1000], 3.0))
        gc.collect()
        self.assertEqual(kept.sum().item(), 3000.0)
        kept = tenon.from_dlpack(torch.full([1000], 2.0))
        gc.collect()
        self.assertEqual(kept.sum().item(), 2000.0)

    def test_gradients_are_those_of_pytorch(self):
        torch.manual_seed(0)
        net = torch.nn.Sequential(
            torch.nn.Conv2d(2, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.ReLU(),
            torch.nn.MaxPool2d(2), torch.nn.Flatten(), torch.nn.Linear(36, 5)).double()
        ours = tenon.Module("Sequential(Conv2d(2, 4, 3), BatchNorm2d(4), ReLU(), MaxPool2d(2), "
                            "Flatten(), Linear(36, 5))").to(dtype="float64")
        ours.load_state_dict({k: tenon.from_dlpack(v.detach()) for k, v in
                              net.state_dict().items()})
        x, target = torch.randn(6, 2, 8, 8).double(), torch.randint(0, 5, (6,))
        loss = torch.nn.functional.cross_entropy(net(x), target)
        loss.backward()
        our_loss = tenon.cross_entropy(ours(tenon.from_dlpack(x)), tenon.from_dlpack(target))
        our_loss.backward()
        self.assertAlmostEqual(our_loss.item(), loss.item(), places=12)
        theirs = dict(net.named_parameters())
        for name, p in ours.named_parameters():
            self.assertLess((torch.from_dlpack(p.grad) - theirs[name].grad).abs().max().item(),
                            1e-12, name)


class NoOtherLibrary(unittest.TestCase):
    def test_memory_of_python(self):
        import ctypes
        block = (ctypes.c_float * 4)(1, 2, 3, 4)
        before = sys.getrefcount(block)
        x = tenon.from_memory(block, ctypes.addressof(block), [2, 2], "float32")
        x *= 2.0
        self.assertEqual(list(block), [2.0, 4.0, 6.0, 8.0])
        del x
        gc.collect()
        self.assertEqual(sys.getrefcount(block), before)

    def test_between_tensors(self):
        x = tenon.ones(3)
        y = tenon.from_dlpack(x)
        self.assertEqual(y.data_ptr(), x.data_ptr())
        with self.assertRaises(BufferError):
            x.__dlpack__(dl_device=(2, 0))
        with self.assertRaises(BufferError):
            tenon.ones(1, requires_grad=True).__dlpack__()


if __name__ == "__main__":
    unittest.main()
