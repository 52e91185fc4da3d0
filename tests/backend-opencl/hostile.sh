#!/bin/sh
# SPDX-License-Identifier: MIT
#
# A driver of OpenCL that aborts, exits, prints, hangs, fails or lies at each function that the
# plugin calls: `tenon devices` lists the other devices, ends, and says what happened.
set -u
fake=$abs_builddir/tests/backend-opencl/.libs/fake.so
test -f "$fake" || { echo "SKIP: no fake driver was built"; exit 77; }
test -f "$abs_builddir/plugins/.libs/backend-opencl.so" ||
    { echo "SKIP: no device opencl"; exit 77; }
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
export TENON_OPENCL_LIBRARY="$fake"
functions=$(sed 's/X(\(cl[A-Za-z]*\))/\n\1\n/g' \
    "$abs_srcdir/plugins/backend-opencl/cl_api.h" | grep '^cl[A-Z][A-Za-z]*$')
test "$(echo "$functions" | wc -l)" -ge 30 || { echo "only these functions: $functions"; exit 1; }
bad=0
tell() {
    echo "$1"
    sed 's/^/    /' "$work/out" "$work/err"
    bad=1
}
# devices MODE FUNCTION [NUMBER]
devices() {
    TENON_TEST_FAKE=$1:$2 TENON_TEST_FAKE_DEVICES=${3-1} "$abs_builddir/tools/tenon" devices \
        >"$work/out" 2>"$work/err" </dev/null
    status=$?
    test $status -eq 0 || tell "$1 $2: status $status"
    grep -q '^cpu:0' "$work/out" || tell "$1 $2: no device cpu"
    ! grep -q 'a driver that prints' "$work/out" "$work/err" || tell "$1 $2: the driver printed"
}

devices none none 2
grep -q '^opencl:1' "$work/out" || tell "a driver that works: two devices"
for f in $functions; do
    for mode in abort exit print; do
        devices $mode "$f"
        ! grep -q '^opencl' "$work/out" || tell "$mode $f: the device is listed"
        tr -s ' \n' ' ' <"$work/out" | grep -q "the driver ended the process.* in $f" ||
            tell "$mode $f: no reason"
    done
    for mode in fail lie; do
        devices $mode "$f"
    done
done
# What a driver says and does not do is seen where it has results.
for f in clCreateContext clCreateCommandQueue clCreateBuffer clEnqueueFillBuffer \
    clEnqueueWriteBuffer clEnqueueCopyBuffer clEnqueueReadBuffer clEnqueueMapBuffer \
    clCreateProgramWithSource clCreateKernel clSetKernelArg clEnqueueNDRangeKernel \
    clEnqueueMarkerWithWaitList clGetEventInfo; do
    devices lie "$f"
    ! grep -q '^opencl' "$work/out" || tell "lie $f: the device is listed"
done
# The other device of the driver stays, and both are told apart.
devices abort clBuildProgram 2
grep -q '^opencl:0' "$work/out" || tell "abort of one device: the other is gone"
! grep -q '^opencl:1' "$work/out" || tell "abort of one device: it is listed"
grep -q 'is ignored: the driver ended the process with signal 6 in clBuildProgram' "$work/err" ||
    tell "abort of one device: nobody says so"
TENON_OPENCL_SECONDS=1
export TENON_OPENCL_SECONDS
for f in clGetPlatformIDs clCreateContext clFinish clWaitForEvents; do
    devices hang "$f"
    tr -s ' \n' ' ' <"$work/out" | grep -q "$f did not return within 1 s" ||
        tell "hang $f: no reason"
done
# A time that is none is refused by its name.
for seconds in 0 -1 86401 9223372036854775807; do
    TENON_OPENCL_SECONDS=$seconds "$abs_builddir/tools/tenon" devices >"$work/out" 2>&1
    tr -s ' \n' ' ' <"$work/out" | grep -q "TENON_OPENCL_SECONDS: out of range, got $seconds;" ||
        tell "TENON_OPENCL_SECONDS=$seconds: not refused"
done
# A name that no device has opens no driver that ends this process.
TENON_TEST_FAKE=abort:clGetDeviceIDs "$abs_builddir/tools/tenon" devices nowhere \
    >"$work/out" 2>"$work/err"
test $? -lt 128 || tell "devices nowhere: ended by a signal"
test $bad -eq 0 && echo "$(echo "$functions" | wc -l) functions"
