# SPDX-License-Identifier: MIT
"""The examples of docs/guides/python.md run."""

import contextlib
import io
import os
import re
import tempfile
import unittest

import tenon

PAGE = os.path.join(os.environ.get("abs_srcdir", ""), "docs", "guides", "python.md")


@unittest.skipUnless(os.path.exists(PAGE), "the page is not there")
class Guide(unittest.TestCase):
    def test_examples(self):
        try:
            import numpy  # noqa: F401: its kernel uses it
        except ImportError:
            self.skipTest("this Python has no NumPy")
        with open(PAGE, encoding="utf-8") as file:
            blocks = re.findall(r"^```python\n(.*?)^```", file.read(), re.M | re.S)
        self.assertGreaterEqual(len(blocks), 4)
        names = {"batches": [(tenon.randn(2, 784), tenon.tensor([1, 2]))]}
        before = os.getcwd()
        with tempfile.TemporaryDirectory() as folder, \
                contextlib.redirect_stdout(io.StringIO()) as out:
            os.chdir(folder)
            try:
                for block in blocks:
                    exec(block, names)
            finally:
                os.chdir(before)
        self.assertIn("34.0 [[2.0, 4.0], [6.0, 8.0]]", out.getvalue())
        self.assertIn("relu", out.getvalue())


if __name__ == "__main__":
    unittest.main()
