#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The kernels whose work items share memory, in a simulator that finds data races, accesses out of
# bounds and misuse of the API.
case $TN_SANITIZERS in no | "") ;; *) echo "SKIP: oclgrind is not built for sanitizers"; exit 77 \
    ;; esac
oclgrind=$(command -v oclgrind) || { echo "SKIP: oclgrind is not installed"; exit 77; }
loader=${oclgrind%/bin/*}/lib/oclgrind/liboclgrind-rt.so
test -f "$loader" || { echo "SKIP: $loader is not there"; exit 77; }
log=tests/gpu/oclgrind.log
rm -f $log
OCLGRIND_DATA_RACES=1 OCLGRIND_CHECK_API=1 OCLGRIND_LOG=$log TENON_OPENCL_LIBRARY=$loader \
    TN_TEST_SLOW_DEVICE=1 \
    TN_TEST_GPU=opencl ./tests/gpu/test_kernels || exit $?
if test -s $log; then
    echo "oclgrind found something:"
    head -60 $log
    exit 1
fi
