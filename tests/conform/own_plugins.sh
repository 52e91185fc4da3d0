#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Our own plugins keep what tenon check asks for: the contract by all of them, and a part of the
# operators. `tests/conform/own_plugins.sh all` leaves nothing out; `all 3` takes the checks of day
# 3, a quarter of them: .ci/run does that. Every plugin that was built is found; `plan` says what is
# checked of which.
set -u
top=${srcdir:-.}
TENON_PLUGIN_PATH=$PWD/plugins/.libs
export TENON_PLUGIN_PATH
# The fake CUDA driver runs the kernels as C, so no GPU is needed.
TENON_CUDA_DRIVER=${TENON_CUDA_DRIVER-$PWD/tests/.libs/fake-cuda.so}
TENON_CUDA_KERNELS=${TENON_CUDA_KERNELS-$top/tests/fake-cuda/kernels}
TENON_CUDA_BLAS=${TENON_CUDA_BLAS-$PWD/tests/.libs/fake-cuda.so}
export TENON_CUDA_DRIVER TENON_CUDA_KERNELS TENON_CUDA_BLAS
unset TENON_DEVICE TENON_PLUGIN_PATH_ADD
strict=examples/strict-device/.libs/strict.so

# one CHECK: a line of the plan
one() {
    set -f
    # shellcheck disable=SC2086
    set -- $1
    file=$1
    shift
    test -f "$file" || { echo "$file: not built"; return 0; }
    case $* in *'--device strict'*)
        TENON_PLUGIN_PATH_ADD=$PWD/${strict%/*}
        export TENON_PLUGIN_PATH_ADD ;;
    esac
    # The driver of OpenCL takes longer to start than most tests, each in a process of its own.
    case "$file $*" in *opencl*) ;; *)
        TENON_PLUGINS='!backend-opencl'
        export TENON_PLUGINS ;;
    esac
    log=$(mktemp) || exit 99
    # tenon check does not show reports of AddressSanitizer about the process of a test
    if test -n "${ASAN_OPTIONS-}"; then
        ASAN_OPTIONS=$ASAN_OPTIONS:log_path=$log.asan
        export ASAN_OPTIONS
    fi
    tools/tenon check "$file" --cases "$top/tests/oracle" --jobs 2 --seconds 600 "$@" >"$log" 2>&1
    code=$?
    { echo "$file $*: $(tail -n 1 "$log")"
        set +f
        test $code -eq 0 || grep '^FAIL' "$log" || cat "$log"
        test $code -eq 0 || cat "$log".asan.* 2>/dev/null; } >"$log.said"
    # Each layer runs on each device, except for Orthogonal, whose operators only the cpu has.
    if grep '^skip *layers/.*: no kernel on device type' "$log" |
        grep -v '^skip *layers/Orthogonal '; then
        echo "FAIL  a layer has lost a kernel"
        code=1
    fi
    cat "$log.said"
    rm -f "$log" "$log.said" "$log".asan.*
    test $code -eq 0
}
if test "${1-}" = --one; then
    one "$2"
    exit
fi

# ---- what is checked, the longest first ----------------------------------------------------------

few="--only */add"
contract="--level contract --only contract/*"
# AddressSanitizer ends the process at an allocation that is too large: no contract/t* then
test "${TN_SANITIZERS-no}" = no || contract='--level contract --only contract/[a-su-z]*'
layers="--cases $top/tests/conform/layers.txt" # the last --cases counts
models="--cases $top/tests/conform/models.txt"
optimizers="--cases $top/tests/conform/optimizers.txt"
transforms="--cases $top/tests/conform/transforms.txt"
pruning="--cases $top/tests/conform/pruning.txt"

# A check without --only and --level includes the contract.
plan_all() { # FILE
    case $1 in
    */backend-opencl.so) echo "$1 --only ops/*"; echo "$1 $contract" ;;
    */layers.so)
        echo "$1 --only layers/* --device opencl:0 $layers"
        echo "$1 --only layers/* $layers"
        echo "$1 --only layers/* --device strict $layers"
        echo "$1 $contract" ;;
    */quant.so) echo "$1 --only layers/* $layers"; echo "$1 $contract" ;; # as ops.so
    */parallel.so) echo "$1 $layers" ;;
    */ops.so) echo "$1 $contract" ;; # its operators are tests of backend-cpu.so
    */optim.so) echo "$1 $optimizers" ;;
    */data.so) echo "$1 $transforms" ;;
    */prune.so) echo "$1 $pruning" ;;
    */models.so) echo "$1 $models"; echo "$1 --only layers/[gru]* --device strict $models" ;;
    *) echo "$1" ;;
    esac
}
plan_few() { # FILE
    case $1 in
    */ops.so) echo "$1 --only grad/[ab]*" ;;
    */layers.so) echo "$1 --only layers/[LR]* $layers" ;;
    */quant.so) echo "$1 --only layers/[MQ]* $layers" ;;
    */parallel.so) echo "$1 --only layers/* $layers" ;;
    */data.so) echo "$1 --only datasets/*,transforms/* $transforms" ;;
    */models.so) echo "$1 --only layers/[gluv]* $models" ;;
    */backend-cpu.so | */backend-opencl.so | */backend-cuda.so | "$strict") echo "$1 $few" ;;
    esac
    echo "$1 $contract"
}
plan_sanitized() { # FILE: a process that carries a sanitizer takes its time to start
    case $1 in
    */ops.so) echo "$1 --only grad/a*"; return ;;
    */backend-cpu.so) echo "$1 $few" ;;
    esac
    echo "$1 $contract"
}
plan() {
    kind=few
    test "${TN_SANITIZERS-no}" = no || kind=sanitized
    test "${1-}" != all || kind=all
    for file in plugins/.libs/*.so "$strict" examples/.libs/swish.so; do
        plan_$kind "$file"
    done
    echo "examples/.libs/swish.so --only layers/* $layers"
    echo "examples/kernel-pack/.libs/relu_pack.so --device strict"
}
# Sorts the checks by the processor time that each needed when it was measured.
longest_first() {
    awk '{ place = 9 }
        /backend-opencl.* --only ops/ { place = 1 }
        /strict.so( --level.*)?$/ { place = 2 }
        /layers.so .*opencl/ { place = 3 }
        /backend-cpu.so$/ { place = 4 }
        /backend-cuda.so$/ { place = 5 }
        { print place "\t" $0 }' | sort -s -n -k 1,1 | cut -f 2
}
# Of the checks, every fourth; the other three quarters are those of the days before and after.
of_day() {
    if test -n "${1-}"; then awk -v day="$1" 'NR % 4 == day % 4'; else cat; fi
}

# Two at a time: a check waits at its end for its last test.
plan "${1-}" | longest_first | of_day "${2-}" | tr '\n' '\0' |
    xargs -0 -P 2 -I CHECK sh "$0" --one CHECK &&
    echo "PASS: own_plugins.sh"
