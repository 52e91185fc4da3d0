#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The shared kernels, compiled as C, on the fake CUDA driver.
TN_TEST_GPU=cuda exec ./tests/gpu/test_kernels
