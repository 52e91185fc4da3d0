#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The host side of the OpenCL backend; see tests/gpu/kernels-opencl.sh about sanitizers.
case $TN_SANITIZERS in *thread*) echo "SKIP: OpenCL drivers are not built for ThreadSanitizer"; exit 77 ;; esac
LSAN_OPTIONS="suppressions=${srcdir:-.}/tests/gpu/drivers.supp:print_suppressions=0" exec ./tests/backend-opencl/test_opencl
