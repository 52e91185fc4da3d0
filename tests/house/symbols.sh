#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Rules 1 and 2: a plugin exports tn_plugin_query and nothing else, and imports nothing of ours.
# libtenon exports the functions of its headers and nothing else, is under 1 MiB stripped, and needs
# libc, libm and libltdl only.
cd "$abs_builddir" || exit 1
status=0
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
nm=${NM:-nm}
complain() {
    echo "$@"
    status=1
}
defined() { $nm -D --defined-only "$1" |
    awk '$2 ~ /^[A-Zuvw]$/ && $3 !~ /^(_init|_fini|_edata|_end|__bss_start|TENON_[0-9]+)(@.*)?$/ {
        sub(/@.*/, "", $3); print $3 }' | sort; }

checked=0
for so in plugins/.libs/*.so; do
    test -f "$so" || continue
    checked=$((checked + 1))
    out=$(defined "$so" | grep -vE '^(__asan_|__odr_asan|__ubsan|__tsan)')
    test "$out" = tn_plugin_query || complain "$so exports:" $out
    in=$($nm -D --undefined-only "$so" | awk '{ print $NF }' | grep '^tn_')
    test -z "$in" || complain "$so imports from us:" $in
    needed=$(objdump -p "$so" 2>/dev/null | awk '/NEEDED/ { print $2 }' |
        grep -E 'tenon|OpenCL|libcuda|blas|cublas|gomp')
    test -z "$needed" || complain "$so links what only activate may open:" $needed
    if test "$TN_SANITIZERS" = no && objdump -p "$so" | grep -qw INIT_ARRAY && $nm "$so" |
        grep -E '_GLOBAL__sub_I|\bfrom_ctor'; then
        complain "$so has a static constructor"
    fi
done

lib=.libs/libtenon.so
test -f $lib || { echo "$lib is missing"; exit 1; }
list=lib/exports.sym
defined $lib | grep -vE '^(__asan_|__odr_asan|__ubsan|__tsan)' >"$work/out"
sort -u $list >"$work/list"
extra=$(comm -23 "$work/out" "$work/list")
test -z "$extra" || complain "libtenon exports what no header declares:" $extra
missing=$(comm -13 "$work/out" "$work/list")
test -z "$missing" || complain "a header declares what libtenon does not have:" $missing
test -z "$(grep -v '^tn_[a-z]' "$work/out")" ||
    complain "libtenon exports names that are not ours:" $(grep -v '^tn_[a-z]' "$work/out")

# Where the linker has versions, each symbol has that of the ABI's major version.
if grep -q '^TN_EXPORTS = .*version-script' Makefile; then
    bare=$($nm -D --defined-only $lib | awk '$3 ~ /^tn_/ && $3 !~ /@@TENON_[0-9]+$/ { print $3 }' |
        head -n 5)
    test -z "$bare" || complain "libtenon exports without a version:" $bare
fi

# With -Bsymbolic-functions, libtenon calls its own functions directly.
if grep -q '^TN_SYMBOLIC = *-' Makefile; then
    indirect=$(objdump -R $lib | awk '/JUMP_SL/ && $3 ~ /^tn_/ { print $3 }' | head -n 5)
    test -z "$indirect" || complain "libtenon calls its own functions by the PLT:" $indirect
fi

if test "$TN_SANITIZERS" = no && test "$checked" -gt 0; then
    needed=$(objdump -p $lib | awk '/NEEDED/ { print $2 }' |
        grep -vE '^(libc|libm|libltdl|libpthread|libdl|ld-linux[-a-z0-9_]*)\.so')
    test -z "$needed" || complain "libtenon needs more than libc, libm and libltdl:" $needed
    strip -o "$work/stripped" "$(readlink -f $lib)"
    size=$(stat -c %s "$work/stripped")
    test "$size" -lt 1048576 ||
        complain "libtenon has $size bytes when stripped; 1048576 are too many"
    echo "libtenon: $size bytes stripped, $(wc -l <"$work/out") symbols"
fi
# The dynamic loader reserves about 1.6 kB for thread-local storage of all libraries that a process
# opens.
if test "$TN_SANITIZERS" = no; then
    tls=$(LC_ALL=C objdump -p $lib | awk '$1 == "TLS" { getline; print $4 }')
    test "$((${tls:-0}))" -le 512 ||
        complain "libtenon has $((tls)) bytes of thread-local storage; 512 are the most"
fi
echo "$checked plugins"
exit $status
