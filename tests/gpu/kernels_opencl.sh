#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The shared kernels on the OpenCL driver that the loader finds.
TN_TEST_GPU=opencl exec ./tests/gpu/test_kernels
