#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The shared kernels on the fake CUDA driver, with matrix products by the fake cuBLASLt. A run in
# which cuBLASLt computes no product fails, and a run without cuBLASLt is skipped: runs on a real
# GPU (tests/device) rely on that.
TN_TEST_GPU=cuda
export TN_TEST_GPU
TN_TEST_BLAS=1 ./tests/gpu/test_kernels || exit
TN_TEST_BLAS=1 CK_RUN_CASE=none ./tests/gpu/test_kernels && {
    echo "FAIL: no product, and the run passed"; exit 1; }
TENON_CUDA_DRIVER=$PWD/tests/.libs/fake-cuda.so \
    TENON_CUDA_KERNELS=$abs_srcdir/tests/fake-cuda/kernels TN_TEST_BLAS=/nowhere/lt.so \
    ./tests/gpu/test_kernels
status=$?
test $status -eq 77 || { echo "FAIL: status $status without cuBLASLt; 77 is wanted"; exit 1; }
echo "PASS: kernels_cuda_blas.sh"
