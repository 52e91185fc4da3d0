#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The shared kernels on the OpenCL driver that the loader finds. Drivers are not ours: ThreadSanitizer cannot see into
# them, and what they keep is no leak of ours.
case $TN_SANITIZERS in *thread*) echo "SKIP: OpenCL drivers are not built for ThreadSanitizer"; exit 77 ;; esac
LSAN_OPTIONS="suppressions=${srcdir:-.}/tests/gpu/drivers.supp:print_suppressions=0" TN_TEST_GPU=opencl exec ./tests/gpu/test_kernels
