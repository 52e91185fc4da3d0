#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Each public header compiles alone, as C11 and as C++17, without a warning under -Wall -Wextra
# -pedantic; <tenon/plugin.h> too, and the descriptor macros as C11, as C++17 and as C++20. With
# every compiler that is here.
status=0
checked=0
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
include="-I$abs_builddir/sdk/include -I$abs_srcdir/sdk/include"
warn='-Wall -Wextra -pedantic -Werror -fsyntax-only'

compile() {
    what=$1
    shift
    compiler=$1
    shift
    checked=$((checked + 1))
    # shellcheck disable=SC2086
    if ! "$compiler" $warn $include "$@" >"$work/out" 2>&1; then
        echo "$what does not compile: $compiler $*"
        head -n 20 "$work/out"
        status=1
    fi
}

headers=$(cd "$abs_srcdir/sdk/include/tenon" && ls ./*.h
    cd "$abs_builddir/sdk/include/tenon" 2>/dev/null && ls ./*.h)
headers=$(printf '%s\n' "$headers" | sed 's,^\./,,' | sort -u | grep -vx 'host.h')
for h in $headers; do
    printf '#include <tenon/%s>\n#include <tenon/%s>\n' "$h" "$h" >"$work/$h.c"
    cp "$work/$h.c" "$work/$h.cc"
    test "$h" = plugin.h || cat "$work/$h.c" >>"$work/all.cc" # it replaces those for programs
done
# query.h is for the host and for plugins; its export macro needs host.h, which only plugin.h may
# include.
cp "$abs_srcdir/tests/house/descriptors.c" "$work/descriptors.c"
cp "$work/descriptors.c" "$work/descriptors.cc"

for cc in gcc clang; do
    command -v $cc >/dev/null || continue
    for h in $headers; do compile "<tenon/$h> as C11" $cc -std=c11 -x c "$work/$h.c"; done
    compile "a plugin as C11" $cc -std=c11 -x c "$work/descriptors.c"
done
each=$headers
for cxx in g++ clang++; do
    command -v $cxx >/dev/null || continue
    printf '#include <initializer_list>\n' | $cxx -std=c++17 -x c++ -fsyntax-only - 2>/dev/null ||
        continue
    # The second compiler gets all headers in one file: the first one has found missing #includes.
    if test -z "$each"; then
        compile "the headers as C++17" $cxx -std=c++17 -x c++ "$work/all.cc"
    fi
    for h in $each; do compile "<tenon/$h> as C++17" $cxx -std=c++17 -x c++ "$work/$h.cc"; done
    each=
    # g++ counts members that designated initializers leave out as missing; C does not.
    compile "a plugin as C++20" $cxx -std=c++20 -Wno-missing-field-initializers -x c++ \
        "$work/descriptors.cc"
    compile "a plugin as C++17" $cxx -std=c++17 -x c++ \
        "$abs_srcdir/tests/house/descriptors_cxx17.cc"
done
test $checked -gt 0 || { echo "SKIP: no compiler named gcc, clang, g++ or clang++"; exit 77; }
echo "$checked compilations"
exit $status
