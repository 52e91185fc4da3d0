#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The same with products through the fake cuBLASLt.
TN_TEST_GPU=cuda TN_TEST_BLAS=1 exec ./tests/gpu/test_kernels
