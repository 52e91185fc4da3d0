#!/bin/sh
# SPDX-License-Identifier: MIT
#
# `tenon new` with an installed Tenon alone: a project of each kind builds with its plain Makefile
# and passes its own test, one of them also with Autotools and with CMake. What cannot be begun is
# refused, and leaves nothing.
test "${TN_SANITIZERS-no}" = no || {
    echo "SKIP: programs without a sanitizer cannot load a library that has one"; exit 77; }
command -v pkg-config >/dev/null || { echo "SKIP: pkg-config is not here"; exit 77; }
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
status=0
fail() {
    echo "FAILED: $1"
    test ! -s "$work/log" || tail -n 30 "$work/log" | sed 's/^/    /'
    status=1
}
unset MAKEFLAGS MFLAGS MAKELEVEL TENON_PLUGIN_PATH TENON LD_LIBRARY_PATH
umask 022
make -C "$abs_builddir" -s install DESTDIR="$work/root" >"$work/log" 2>&1 ||
    { fail "make install"; exit 1; }
pc=$(find "$work/root" -name tenon.pc)
tenon=$(find "$work/root" -name tenon -path '*/bin/*')
PKG_CONFIG_PATH=$(dirname "$pc") PATH=$(dirname "$tenon"):$PATH
export PKG_CONFIG_PATH PATH
mkdir "$work/projects"
cd "$work/projects" || exit 1

# ---- every kind ----
kinds='layer backend kernels op optimizer format dataset transform scheduler init pruning pass
    compiler observer communicator'
for kind in $kinds; do
    if ! tenon new $kind "My_$kind" >"$work/log" 2>&1; then
        fail "tenon new $kind"
        continue
    fi
    grep -q "next: cd My_$kind && make check" "$work/log" || fail "tenon new $kind: what is next"
    grep -rlE '@(NAME|Name|name)@' "My_$kind" >"$work/log" && fail "$kind: marks are left"
    make -C "My_$kind" -s check CC="${CC:-cc}" CFLAGS='-O0 -Wall -Wextra -Werror' \
        >"$work/log" 2>&1 || fail "$kind: make check"
    grep -q ', 0 failed, ' "$work/log" || fail "$kind: tenon check did not run"
done
tenon new --help >"$work/log"
test "$(sed -n '/^Kinds:/,/^$/p' "$work/log" | grep -c '^  ')" -eq "$(echo "$kinds" | wc -w)" ||
    fail "this test does not have all kinds of tenon new --help"

# ---- every kind in C++17 ----
cxx=${CXX_CHECK:-g++}
if printf '#include <initializer_list>\n' |
    $cxx -std=c++17 -x c++ -fsyntax-only - 2>"$work/log"; then
    for kind in $kinds; do
        tenon new $kind "cxx_$kind" --cxx >"$work/log" 2>&1 || fail "tenon new $kind --cxx"
        test -f "cxx_$kind/cxx_$kind.cc" || fail "$kind --cxx: no file .cc"
        make -C "cxx_$kind" -s check CXX="$cxx" \
            CXXFLAGS='-std=c++17 -O0 -Wall -Wextra -Werror -Wno-missing-field-initializers' \
            >"$work/log" 2>&1 || fail "$kind --cxx: make check"
        grep -q ', 0 failed, ' "$work/log" || fail "$kind --cxx: tenon check did not run"
    done
else
    echo "SKIP: no C++17 compiler is here"
fi

make -C My_layer -s install DESTDIR="$work/there" >"$work/log" 2>&1 || fail "make install"
test -n "$(find "$work/there" -name My_layer.so)" || fail "make install copied nothing"
make -C My_layer -s clean || fail "make clean"
test ! -f My_layer/My_layer.so || fail "make clean left the plugin"

# ---- other builds ----
# A device of this kind, by name.
TENON_PLUGIN_PATH_ADD=$(pwd)/My_backend tenon devices my_backend:0 >"$work/log" 2>&1 ||
    fail "tenon devices my_backend:0"
grep -q '^memory_kinds  *device$' "$work/log" || fail "tenon devices NAME: no memory_kinds"
grep -q '^dtypes  *float32, float64$' "$work/log" || fail "tenon devices NAME: no dtypes"
if tenon new format other >"$work/log" 2>&1 && command -v autoreconf >/dev/null; then
    (cd other && autoreconf -fi && mkdir b && cd b && ../configure CC="${CC:-cc}" CFLAGS=-O0 &&
        make check && make install DESTDIR="$work/auto") >"$work/log" 2>&1 || fail "Autotools"
    grep -q ', 0 failed, ' "$work/log" || fail "Autotools: tenon check did not run"
    test "$(find "$work/auto" -type f | sed 's,.*/,,')" = other.so || {
        find "$work/auto" >"$work/log"; fail "Autotools: make install"; }
else
    echo "SKIP: autoreconf is not here"
fi
if command -v cmake >/dev/null; then
    CMAKE_PREFIX_PATH=$(dirname "$(dirname "$tenon")")
    export CMAKE_PREFIX_PATH
    for project in other cxx_dataset; do
        test -d $project || continue
        (cd $project && CC=${CC:-cc} CXX=$cxx cmake -B c -DCMAKE_BUILD_TYPE=Debug &&
            cmake --build c && cd c && ctest -V) >"$work/log" 2>&1 || fail "CMake: $project"
        grep -q ', 0 failed, ' "$work/log" || fail "CMake: $project: tenon check did not run"
        DESTDIR="$work/cmade" cmake --install $project/c >"$work/log" 2>&1 &&
            test -n "$(find "$work/cmade" -path "*/lib*/tenon/*/$project.so")" ||
            fail "CMake: $project: cmake --install"
    done
else
    echo "SKIP: cmake is not here"
fi

# ---- where it goes ----
ls -A >"$work/before"
tenon new layer twice "by path/sub" >"$work/log" 2>&1 && fail "in a folder that is not there"
grep -q 'by path/sub: No such file' "$work/log" || fail "in a folder that is not there: the words"
mkdir "by path"
tenon new layer twice "by path/sub/" --json >"$work/log" 2>&1 || fail "tenon new with a folder"
grep -q '"folder": "by path/sub"' "$work/log" || fail "tenon new --json"
test -f "by path/sub/twice.c" || fail "the file in the folder"
rm -r "by path"

# refused CODE WORDS ARGUMENT...
refused() {
    wanted=$1 words=$2
    shift 2
    tenon new "$@" >"$work/log" 2>&1
    test $? -eq "$wanted" || fail "tenon new $*: the exit status is not $wanted"
    grep -qF -- "$words" "$work/log" || fail "tenon new $*: not refused with: $words"
}
refused 2 'expected KIND NAME [DIR]' layer
refused 2 'kind: unknown, got "plugin"; expected layer, backend, kernels, op, optimizer, format,' \
    plugin x
for name in 1st a-b _x '' a.b ../x example a23456789_123456789_123456789_123456789_1; do
    refused 2 "name: not valid, got \"$name\"; expected a letter" layer "$name"
done
refused 2 'unknown option, got "--fast"' layer x --fast
refused 2 'too many arguments, got "z"' layer x y z
refused 1 'My_op: exists already; expected the name of a new folder' op My_op
refused 1 'My_op/README.md: exists already' op x My_op/README.md
refused 1 'nowhere/op: no templates; expected the templates of an installed Tenon' op x \
    --templates nowhere
mkdir templates templates/op
echo 'int @name@;' >templates/op/NAME.c.in
refused 1 'templates/common: no templates' op x --templates templates
rm -r templates
if test "$(id -u)" != 0; then
    mkdir closed && chmod a-w closed
    refused 1 'closed/x: Permission denied' op x closed/x
    rmdir closed
else
    refused 1 '/proc/x: ' op x /proc/x
fi
ls -A >"$work/log"
cmp -s "$work/before" "$work/log" || fail "something is left of what was refused"
exit $status
