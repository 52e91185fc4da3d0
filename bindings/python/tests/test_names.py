# SPDX-License-Identifier: MIT
"""PyTorch's names, orders of arguments and defaults; networks and datasets in Python; help."""

import copy
import inspect
import unittest

import tenon
from tenon import data, nn
from tenon.nn import functional as F


class Names(unittest.TestCase):
    def setUp(self):
        self.x = tenon.tensor([[1.0, 5.0, 3.0], [4.0, 0.0, 2.0]])

    def test_shapes(self):
        x = self.x
        self.assertEqual((x.size(), x.size(0), x.size(-1), x.dim()), ((2, 3), 2, 3, 2))
        with self.assertRaises(IndexError):
            x.size(2)
        for y, shape in ((x.view(3, 2), (3, 2)), (x.view([6]), (6,)), (x.view(-1), (6,)),
                         (x.reshape(1, -1), (1, 6)), (x.permute(1, 0), (3, 2)),
                         (x.expand(4, -1, -1), (4, 2, 3)), (x.repeat(2, 1), (4, 3)),
                         (x.flatten(), (6,)), (x.t(), (3, 2)), (x.T, (3, 2)),
                         (x.unsqueeze(0).squeeze(0), (2, 3)), (x.tile(2), (2, 6)),
                         (x.unflatten(1, (3, 1)), (2, 3, 1)), (x.view_as(x.t()), (3, 2)),
                         (x.unsqueeze(0).movedim(0, -1), (2, 3, 1)), (tenon.cat([x, x]), (4, 3)),
                         (tenon.stack([x, x], dim=1), (2, 2, 3)), (tenon.hstack([x, x]), (2, 6)),
                         (x.new_zeros(2, 2), (2, 2)), (tenon.zeros_like(x), (2, 3))):
            self.assertEqual(y.shape, shape)
        self.assertEqual(x.flip(1).tolist(), [[3, 5, 1], [2, 0, 4]])
        self.assertEqual([p.shape for p in x.split(2, dim=1)], [(2, 2), (2, 1)])
        self.assertEqual([p.shape for p in x.chunk(2, 1)], [(2, 2), (2, 1)])
        self.assertEqual([p.tolist() for p in x.unbind(1)], [[1, 4], [5, 0], [3, 2]])
        self.assertEqual(x.t().contiguous().tolist(), x.t().tolist())
        self.assertTrue(x.t().contiguous().is_contiguous())

    def test_dtypes(self):
        x = self.x
        for y, dtype in ((x.double(), "float64"), (x.float(), "float32"), (x.half(), "float16"),
                         (x.long(), "int64"), (x.int(), "int32"), (x.bool(), "bool"),
                         (x.byte(), "uint8"), (x.type_as(x.long()), "int64")):
            self.assertEqual(y.dtype, dtype)
        self.assertTrue(x.is_floating_point() and not x.long().is_floating_point())

    def test_reductions(self):
        x = self.x
        self.assertEqual(x.mean(dim=1).tolist(), [3, 2])
        self.assertEqual(x.sum(0).tolist(), [5, 5, 5])
        self.assertEqual(x.sum(dim=(0, 1), keepdim=True).tolist(), [[15]])
        self.assertEqual((x.max().item(), x.min().item()), (5, 0))
        values, places = x.max(1)
        self.assertEqual((values.tolist(), places.tolist()), ([5, 4], [1, 0]))
        self.assertEqual(x.max(dim=0, keepdim=True).values.tolist(), [[4, 5, 3]])
        self.assertEqual(tenon.max(x, tenon.full_like(x, 2)).tolist(), [[2, 5, 3], [4, 2, 2]])
        self.assertEqual(x.argmax(dim=1).tolist(), [1, 0])
        self.assertEqual(x.std(1).tolist(), [2, 2])
        self.assertAlmostEqual(x.var(1, unbiased=False)[0].item(), 8 / 3, places=6)
        self.assertAlmostEqual(x.var(dim=1, correction=0)[0].item(), 8 / 3, places=6)
        self.assertEqual(x.sort(dim=1, descending=True).indices.tolist(), [[1, 2, 0], [0, 2, 1]])
        self.assertEqual(x.topk(1)[1].tolist(), [[1], [0]])
        self.assertEqual(x.cumsum(1).tolist(), [[1, 6, 9], [4, 4, 6]])
        self.assertEqual(x.norm().item(), 55 ** 0.5 if False else x.square().sum().sqrt().item())
        self.assertEqual((x > 2).any(dim=0).tolist(), [True, True, True])
        self.assertEqual((x > 2).all().item(), False)
        self.assertEqual(tenon.unique(tenon.tensor([3, 1, 3])).tolist(), [1, 3])
        self.assertTrue(tenon.allclose(x, x + 1e-9) and not tenon.equal(x, x + 1))

    def test_elementwise(self):
        x = self.x
        self.assertEqual(x.clamp(1, 3).tolist(), [[1, 3, 3], [3, 1, 2]])
        self.assertEqual(x.clamp(min=tenon.tensor(2.0)).tolist(), [[2, 5, 3], [4, 2, 2]])
        self.assertEqual(tenon.add(x, x, alpha=2).tolist(), (x * 3).tolist())
        self.assertEqual(tenon.where(x > 2, x, 0.0).tolist(), [[0, 5, 3], [4, 0, 0]])
        self.assertEqual([i.tolist() for i in tenon.where(x > 3)], [[0, 1], [1, 0]])
        self.assertEqual(x.masked_fill(x > 3, 0).tolist(), [[1, 0, 3], [0, 0, 2]])
        self.assertEqual(tenon.lerp(x, x + 2, 0.5).tolist(), (x + 1).tolist())
        self.assertEqual(tenon.einsum("ij,kj->ik", x, x).shape, (2, 2))
        self.assertEqual((x // 2).tolist(), [[0, 2, 1], [2, 0, 1]])
        y = x.clone()
        self.assertIs(y.zero_(), y)
        self.assertEqual(y.fill_(2).add_(1).mul_(2).tolist(), [[6] * 3] * 2)
        self.assertEqual(F.relu(y.neg_(), inplace=True).sum().item(), 0)
        y -= 1
        y /= 2
        y **= 2
        self.assertEqual(y.tolist(), [[0.25] * 3] * 2)

    def test_functional(self):
        x = self.x
        w, b = tenon.ones(4, 3), tenon.ones(4)
        self.assertEqual(F.linear(x, w, b).tolist(), [[10] * 4, [7] * 4])
        i = tenon.tensor([1, 0])
        self.assertEqual(F.embedding(i, x).tolist(), [[4, 0, 2], [1, 5, 3]])
        loss = F.cross_entropy(x, i)
        self.assertAlmostEqual(F.nll_loss(F.log_softmax(x, dim=1), i).item(), loss.item(), places=6)
        weighted = F.cross_entropy(x, i, tenon.tensor([1.0, 2.0, 1.0]), reduction="sum")
        each = F.cross_entropy(x, i, reduction="none")
        self.assertAlmostEqual(weighted.item(), (2 * each[0] + each[1]).item(), places=5)
        self.assertEqual(F.mse_loss(x, x + 2).item(), 4)
        self.assertEqual(F.layer_norm(x, (3,), tenon.ones(3), tenon.ones(3)).shape, (2, 3))
        image = tenon.arange(16.0).reshape(1, 1, 4, 4)
        self.assertEqual(F.max_pool2d(image, 2).tolist(), [[[[5, 7], [13, 15]]]])
        self.assertEqual(F.max_pool2d(image, 2, return_indices=True)[1].flatten().tolist(),
                         [5, 7, 13, 15])
        self.assertEqual(F.interpolate(image, scale_factor=2).shape, (1, 1, 8, 8))
        self.assertEqual(F.pad(image, (1, 1)).shape, (1, 1, 4, 6))
        self.assertEqual(F.one_hot(i, 3).tolist(), [[0, 1, 0], [1, 0, 0]])
        self.assertEqual(F.dropout(x, 0.5, training=False).tolist(), x.tolist())
        self.assertAlmostEqual(F.softmax(x, -1).sum().item(), 2, places=5)
        with self.assertRaisesRegex(TypeError, "size_average"):
            F.mse_loss(x, x, True)
        with self.assertRaises(AttributeError):
            F.no_such_function

    def test_help(self):
        self.assertEqual(tenon.__version__, tenon.version())
        self.assertIn("in_features", nn.Linear.__doc__)
        self.assertEqual(list(inspect.signature(nn.Linear).parameters)[:3],
                         ["in_features", "out_features", "bias"])
        self.assertTrue(isinstance(nn.Linear(2, 2), nn.Linear))
        self.assertFalse(isinstance(nn.ReLU(), nn.Linear))
        self.assertIn("dim", inspect.signature(tenon.index_select).parameters)
        self.assertEqual([n for n in dir(data) if not n.startswith("_")],
                         ["DataLoader", "Dataset", "Subset", "TensorDataset", "random_split"])


class Networks(unittest.TestCase):
    def test_a_network_as_in_pytorch(self):
        class Net(nn.Module):
            def __init__(self, width, name="n"):
                super().__init__()
                self.name = name
                self.first = nn.Linear(3, width)
                self.rest = nn.Sequential(nn.ReLU(), nn.Linear(width, 2))
                self.scale = nn.Parameter(tenon.ones(2))
                self.register_buffer("count", tenon.zeros(1))

            def forward(self, x, twice=False):
                y = self.rest(self.first(x)) * self.scale
                return y * 2 if twice else y

        net = Net(4, name="a")
        x = tenon.randn(5, 3)
        self.assertEqual((net(x).shape, net.name), ((5, 2), "a"))
        self.assertTrue(tenon.allclose(net(x, twice=True), net(x) * 2))
        self.assertEqual(sorted(net.state_dict()), ["count", "first.bias", "first.weight",
                                                    "rest.1.bias", "rest.1.weight", "scale"])
        self.assertTrue(isinstance(net, nn.Module) and isinstance(net.first, nn.Module))
        self.assertEqual(repr(net).split("\n")[0], "Net(")
        net(x).sum().backward()
        self.assertIsNotNone(net.first.weight.grad)
        twin = copy.deepcopy(net)
        self.assertTrue(tenon.equal(twin(x), net(x)))
        with tenon.no_grad():
            twin.scale.zero_()
        self.assertFalse(tenon.equal(twin(x), net(x)))
        self.assertEqual(net.double().first.weight.dtype, "float64")
        seen = []
        net.apply(lambda m: seen.append(m.type))
        self.assertEqual(seen[:3], ["Linear", "ReLU", "Linear"])

        class Net(nn.Module):  # another one of the same name, as in a notebook
            def forward(self, x):
                return -x

        self.assertEqual(Net()(tenon.ones(1)).tolist(), [-1])
        self.assertTrue(tenon.equal(twin(x), twin(x)))
        with self.assertRaises(TypeError):
            nn.Module()

    def test_a_printed_model_gets_a_forward(self):
        net = tenon.Module("Pair(\n  (a): Linear(in_features=2, out_features=3, bias=True)\n"
                           "  (b): Linear(in_features=3, out_features=1, bias=True)\n)")
        x = tenon.ones(4, 2)
        with self.assertRaisesRegex(NotImplementedError, "set_forward"):
            net(x)
        net.set_forward(lambda self, x, sign=1: self.b(self.a(x).relu()) * sign, "Pair")
        self.assertEqual(net(x).shape, (4, 1))
        self.assertEqual(net(x, sign=-1).tolist(), (-net(x)).tolist())
        with self.assertRaisesRegex(KeyError, "there are Linear, Pair"):
            net.set_forward(lambda self, x: x, "Triple")
        with self.assertRaises(TypeError):
            net.a.set_forward(lambda self, x: x)

    def test_init(self):
        w = tenon.empty(3, 3)
        self.assertIs(nn.init.constant_(w, 2.0), w)
        self.assertEqual(w.tolist(), [[2] * 3] * 3)
        with self.assertRaises(AttributeError):
            nn.init.no_such_


class Own(data.Dataset):
    classes = ["even", "odd"]

    def __len__(self):
        return 10

    def __getitem__(self, i):
        if i == 7 and self.broken:
            raise ValueError("sample seven")
        return tenon.tensor([float(i), 1.0]), i % 2

    broken = False


class Samples(unittest.TestCase):
    def test_a_dataset_in_python(self):
        for dataset in (Own(), [(tenon.tensor([float(i), 1.0]), i % 2) for i in range(10)]):
            for workers in 0, 2:
                loader = data.DataLoader(dataset, 4, num_workers=workers)
                found = [(x.tolist(), y.tolist()) for x, y in loader]
                self.assertEqual(found[1], ([[4, 1], [5, 1], [6, 1], [7, 1]], [0, 1, 0, 1]))
                self.assertEqual(len(found), 3)
        self.assertEqual(Own()[3][1], 1)
        parts = data.random_split(Own(), [0.8, 0.2])
        self.assertEqual([len(p) for p in parts], [8, 2])
        rows = sorted(p[i][0][0].item() for p in parts for i in range(len(p)))
        self.assertEqual(rows, list(range(10)))
        self.assertEqual(parts[0].classes, ["even", "odd"])

    def test_what_a_sample_raises_is_said(self):
        broken = Own()
        broken.broken = True
        with self.assertRaisesRegex(tenon.TenonError, "sample seven"):
            list(data.DataLoader(broken, batch_size=5))

        class Without(data.Dataset):
            def __getitem__(self, i):
                return i

        with self.assertRaisesRegex(TypeError, "__len__"):
            data.DataLoader(Without())
        with self.assertRaisesRegex(TypeError, "expected a Dataset"):
            data.DataLoader(5)


if __name__ == "__main__":
    unittest.main()
