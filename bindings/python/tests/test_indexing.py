# SPDX-License-Identifier: MIT
"""Indices of tensors: programs with PyTorch's results, and what is refused."""

import json
import os
import unittest

import index_programs
import tenon

HERE = os.path.dirname(os.path.abspath(__file__))


class Programs(unittest.TestCase):
    def test_programs_give_what_pytorch_gives(self):
        """tests/oracle/random_indexing.py has written the programs and PyTorch's results."""
        own, count = index_programs.Tenon(), 0
        with open(os.path.join(HERE, "indexing.txt"), encoding="utf-8") as file:
            for line in file:
                program, failed, values = json.loads(line)
                what = index_programs.differs(failed, values, index_programs.run(program, own))
                count += 1
                self.assertIn(what, {None, *index_programs.REFUSED.values()}, "\n".join(program))
        self.assertGreater(count, 200)


class Places(unittest.TestCase):
    def test_what_is_assigned_arrives(self):
        z = tenon.zeros(2, 3)
        z[1] = 5
        z[tenon.tensor([0, 0]), tenon.tensor([1, 2])] += 1
        self.assertEqual(z.tolist(), [[0, 1, 1], [5, 5, 5]])
        z[z > 4] = tenon.tensor([7.0, 8.0, 9.0])
        self.assertEqual(z.tolist(), [[0, 1, 1], [7, 8, 9]])
        z[[1, 0], :2] = [[1, 2], [3, 4]]
        self.assertEqual(z.tolist(), [[3, 4, 1], [1, 2, 9]])
        z[0] += 1
        self.assertEqual(z.tolist(), [[4, 5, 2], [1, 2, 9]])
        i = tenon.tensor([1, 0])
        self.assertEqual(z[i, i].tolist(), [2, 4])
        self.assertEqual(z[True].shape, (1, 2, 3))
        self.assertTrue(9 in z and 3 not in z)

    def test_gradients_reach_what_was_read_and_written(self):
        x = tenon.tensor([1.0, 2.0, 3.0], dtype="float64", requires_grad=True)
        v = tenon.tensor([10.0, 20.0], dtype="float64", requires_grad=True)
        y = x * 2
        y[tenon.tensor([True, False, True])] = v
        (y[[0, 0, 1]] * tenon.tensor([1.0, 2.0, 3.0], dtype="float64")).sum().backward()
        self.assertEqual((x.grad.tolist(), v.grad.tolist()), ([0, 6, 0], [3, 0]))
        with self.assertRaisesRegex(tenon.TenonError, "leaf"):
            x[0] = 1

    def test_the_arguments_of_operators_by_index_are_in_pytorchs_order(self):
        x = tenon.tensor([[0, 1, 2], [3, 4, 5]])
        i = tenon.tensor([1, 0])
        self.assertEqual(x.index_select(1, i).tolist(), [[1, 0], [4, 3]])
        self.assertEqual(tenon.gather(x, 1, i.reshape([2, 1])).tolist(), [[1], [3]])
        self.assertEqual(x.scatter(1, i.reshape([2, 1]), x).tolist(), [[0, 0, 2], [3, 4, 5]])
        self.assertEqual(x.scatter(1, i.reshape([2, 1]), 9).tolist(), [[0, 9, 2], [9, 4, 5]])
        self.assertEqual(x.index_fill(1, i, 7).tolist(), [[7, 7, 2], [7, 7, 5]])
        self.assertEqual(x.index_add(0, i, x, alpha=2).tolist(), [[6, 9, 12], [3, 6, 9]])
        self.assertEqual(x.index_put((i, i), tenon.tensor(8)).tolist(), [[8, 1, 2], [3, 8, 5]])
        self.assertEqual(x.index_put((None, i), tenon.tensor(8), True).tolist(),
                         [[8, 9, 2], [11, 12, 5]])
        self.assertEqual(x.masked_fill(x > 4, tenon.tensor(0)).tolist(), [[0, 1, 2], [3, 4, 0]])
        for call in (lambda: x.index_select(i, 1), lambda: x.gather(i, 0)):
            with self.assertRaisesRegex(TypeError, "dim: wrong type, got .*expected an integer"):
                call()

    def test_what_is_no_index_is_refused(self):
        x = tenon.tensor([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]])
        for index, words in (
                (1.7, "got float 1.7"), (tenon.tensor(1.0), "got float32"),
                (tenon.tensor([0.0]), "got float32"), ("a", "got str"), ([0.5], "in a list"),
                ([True, 0], "not both"), ([[0], [1]], "two meanings"), ((0, 0, 0), "too many"),
                (slice(None, None, -1), "expected at least 1"), (slice(0.5, None), "slice"),
                (slice(0, tenon.tensor(0.7)), "slice"), ((..., ...), "more than one Ellipsis"),
                (tenon.tensor([True]), "mask"), (tenon.tensor([1], dtype="uint8"), "got uint8"),
                (2, "out of range"), (tenon.tensor([2]), "out of bounds"), (None, None)):
            if words is None:
                continue
            with self.assertRaises((IndexError, TypeError, ValueError)) as caught:
                x[index].tolist()
            self.assertIn(words, str(caught.exception))
            with self.assertRaises((IndexError, TypeError, ValueError)):
                x[index] = 1.0
        self.assertEqual(x.tolist(), [[0, 1, 2], [3, 4, 5]])

    def test_what_is_no_number_is_refused(self):
        x = tenon.ones(2, 3)
        for call, words in (
                (lambda: x.narrow(0, tenon.tensor(0.7), 1), "start: wrong type, got Tensor"),
                (lambda: x.narrow(0, 0.0, 1), "start: wrong type, got 0.0"),
                (lambda: x.sum(0, 1), "keepdim: wrong type, got 1"),
                (lambda: tenon.leaky_relu(x, x), "negative_slope: wrong type, got Tensor"),
                (lambda: x.sum(True), "dims: wrong type, got True"),
                (lambda: tenon.zeros(2.0), "expected integers")):
            with self.assertRaises(TypeError) as caught:
                call()
            self.assertIn(words, str(caught.exception))
        self.assertEqual(x.narrow(0, tenon.tensor(1), 1).shape, (1, 3))
        for value, error in ((None, TypeError), ("a", TypeError), (1j, Exception)):
            with self.assertRaises(error):
                x[0] = value


if __name__ == "__main__":
    unittest.main()
