# SPDX-License-Identifier: MIT
"""Datasets of tensors, parts of them, loaders and their state."""

import unittest

import tenon
from tenon import data


class Data(unittest.TestCase):
    def setUp(self):
        self.x = tenon.arange(20).reshape((10, 2))
        self.y = tenon.arange(10)
        self.dataset = data.TensorDataset(self.x, self.y)

    def test_samples(self):
        self.assertEqual(len(self.dataset), 10)
        self.assertEqual(self.dataset.classes, [])
        x, y = self.dataset[3]
        self.assertEqual((x.tolist(), y.item()), ([6, 7], 3))
        part = self.dataset.subset([9, -3])
        del self.dataset
        self.assertEqual([part[i][1].item() for i in range(len(part))], [9, 7])
        self.assertEqual(part[-1][0].tolist(), [14, 15])
        with self.assertRaises(IndexError):
            part[2]
        with self.assertRaises(tenon.TenonError):
            data.Dataset("NoSuchDataset()")
        with self.assertRaises(tenon.TenonError):
            part.transform("NoSuchTransform()")

    def test_batches(self):
        for workers in 0, 2:
            loader = data.DataLoader(self.dataset, batch_size=4, workers=workers)
            self.assertEqual(len(loader), 3)
            for epoch in range(2):
                self.assertEqual(loader.epoch, epoch)
                batches = [(x.tolist(), y.tolist()) for x, y in loader]
                self.assertEqual([y for _, y in batches], [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]])
                self.assertEqual(batches[2][0], [[16, 17], [18, 19]])
        with self.assertRaisesRegex(tenon.TenonError, "batch_size"):
            data.DataLoader(self.dataset, batchsize=4)
        uneven = data.TensorDataset(self.x)
        self.assertEqual(next(iter(data.DataLoader(uneven)))[0].tolist(), [0, 1])

    def test_a_batch_stays_after_the_next_one(self):
        kept = [y for _, y in data.DataLoader(self.dataset, batch_size=5)]
        self.assertEqual([y.tolist() for y in kept], [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]])

    def test_continues(self):
        options = {"batch_size": 3, "shuffle": True, "seed": 5}
        loader = data.DataLoader(self.dataset, **options)
        batches = iter(loader)
        next(batches)
        next(batches)
        other = data.DataLoader(self.dataset, workers=2, **options)
        other.state = loader.state
        self.assertEqual((other.position, other.skipped), (2, 0))
        self.assertEqual([y.tolist() for _, y in other], [y.tolist() for _, y in batches])
        self.assertEqual([y.tolist() for _, y in other], [y.tolist() for _, y in loader])
        with self.assertRaises(ValueError):
            data.DataLoader(self.dataset).state = loader.state

    def test_weights(self):
        loader = data.DataLoader(self.dataset, batch_size=50, seed=1)
        loader.set_weights([0, 0, 1, 0, 0, 0, 0, 3, 0, 0], 50)
        ((_, y),) = loader
        self.assertEqual(set(y.tolist()), {2, 7})


if __name__ == "__main__":
    unittest.main()
