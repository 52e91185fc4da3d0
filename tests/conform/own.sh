#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Our own plugins keep what tenon check asks for: the contract by all of them, and a part of the
# operators. `tests/conform/own.sh all` leaves nothing out; .ci/run does that.
set -u
top=${srcdir:-.}
log=$(mktemp) || exit 99
trap 'rm -f "$log"' EXIT
failed=0
TENON_PLUGIN_PATH=$PWD/plugins/.libs
export TENON_PLUGIN_PATH
# no GPU is needed: the kernels as C
TENON_CUDA_DRIVER=${TENON_CUDA_DRIVER-$PWD/tests/.libs/fake-cuda.so}
TENON_CUDA_KERNELS=${TENON_CUDA_KERNELS-$top/tests/fake-cuda/kernels}
TENON_CUDA_BLAS=${TENON_CUDA_BLAS-$PWD/tests/.libs/fake-cuda.so}
export TENON_CUDA_DRIVER TENON_CUDA_KERNELS TENON_CUDA_BLAS
unset TENON_DEVICE TENON_PLUGIN_PATH_ADD

check() { # FILE ARGUMENT...
    file=$1
    shift
    test -f "$file" || { echo "$file: not built"; return; }
    tools/tenon check "$file" --cases "$top/tests/oracle" --jobs 2 "$@" >"$log" 2>&1
    code=$?
    echo "$file $*: $(tail -n 1 "$log")"
    test $code -eq 0 || { failed=1; grep '^FAIL' "$log" || cat "$log"; }
}

few='*/*add*'
contract='contract/*'
# what is too large ends a process with AddressSanitizer
test "${TN_SANITIZERS-no}" = no || contract='contract/[a-su-z]*'
if test "${1-}" = all; then
    check plugins/.libs/backend-cpu.so
    check plugins/.libs/ops.so
    check examples/strict-device/.libs/strict.so
    check plugins/.libs/backend-opencl.so --only 'ops/*'
    check plugins/.libs/backend-cuda.so
elif test "${TN_SANITIZERS-no}" = no; then
    check plugins/.libs/backend-cpu.so --only "$few"
    check plugins/.libs/ops.so --only 'grad/[ab]*'
    check examples/strict-device/.libs/strict.so --only "$few"
    check plugins/.libs/backend-opencl.so --only "$few"
    check plugins/.libs/backend-cuda.so --only "$few"
else # a process that carries a sanitizer takes its time to start
    check plugins/.libs/backend-cpu.so --only "$few"
    check plugins/.libs/ops.so --only 'grad/a*'
fi
for plugin in plugins/.libs/backend-cpu plugins/.libs/backend-opencl plugins/.libs/backend-cuda \
    plugins/.libs/layers plugins/.libs/optim \
    plugins/.libs/formats examples/strict-device/.libs/strict examples/.libs/swish; do
    check $plugin.so --level contract --only "$contract"
done
layers() { # FILE ARGUMENT...: the last --cases counts
    check "$@" --cases "$top/tests/conform/layers.txt"
}
if test "${1-}" = all; then
    layers plugins/.libs/layers.so --only 'layers/*'
    layers plugins/.libs/layers.so --only 'layers/*' --device opencl:0
    TENON_PLUGIN_PATH_ADD=$PWD/examples/strict-device/.libs; export TENON_PLUGIN_PATH_ADD
    layers plugins/.libs/layers.so --only 'layers/*' --device strict
    unset TENON_PLUGIN_PATH_ADD
elif test "${TN_SANITIZERS-no}" = no; then
    layers plugins/.libs/layers.so --only 'layers/[LR]*'
fi
layers examples/.libs/swish.so --only 'layers/*'
TENON_PLUGIN_PATH_ADD=$PWD/examples/strict-device/.libs
export TENON_PLUGIN_PATH_ADD
check examples/kernel-pack/.libs/relu_pack.so --device strict
test $failed -eq 0 && echo "PASS: own.sh"
exit $failed
