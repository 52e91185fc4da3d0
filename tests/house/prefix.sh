#!/bin/sh
# SPDX-License-Identifier: MIT
#
# An installation whose prefix is chosen at `make install`, is moved later, and is shared by two
# ABIs. After both are uninstalled, no file of Tenon is left.
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
first=$work/first moved=$work/moved
status=0
fail() {
    echo "FAILED: $1"
    test ! -s "$work/log" || tail -n 20 "$work/log" | sed 's/^/    /'
    status=1
}
die() {
    fail "$1"
    exit 1
}
command -v pkg-config >/dev/null || { echo "SKIP: pkg-config is not here"; exit 77; }
unset MAKEFLAGS MFLAGS MAKELEVEL TENON_PLUGIN_PATH LD_LIBRARY_PATH
umask 022
# run TARGET VARIABLE...: make TARGET in the build tree
run() {
    make -C "$abs_builddir" -s "$@" >"$work/log" 2>&1 || die "make $*"
}
# installs or removes the same build under the names of ABI 7
seven() {
    run "$1" "prefix=$moved" TN_ABI=7 "docdir=$moved/share/doc/tenon-7"
}

# ---- chosen at installation, then moved ----
run install "prefix=$first" "docdir=$first/share/doc/tenon-0"
cp -a "$first" "$moved"
PKG_CONFIG_PATH=$moved/lib/pkgconfig
export PKG_CONFIG_PATH
for name in tenon tenon-0 tenon-plugin tenon-plugin-0; do
    headers=$(pkg-config --variable=includedir $name)
    test -f "$headers/tenon/tenon.h" || fail "$name.pc: there are no headers in $headers"
    test "$(cd "$headers" && pwd -P)" = "$(cd "$moved/include/tenon-0" && pwd -P)" ||
        fail "$name.pc: the headers are those of $headers"
    grep -q "^#define TN_ABI_MAJOR $(pkg-config --variable=abi $name)\$" "$headers/tenon/abi.h" ||
        fail "$name.pc: TN_ABI in configure.ac is not TN_ABI_MAJOR"
    folder=$(pkg-config --variable=plugindir $name)
    test "$TN_STATIC" = yes || test -f "$folder/ops.so" ||
        fail "$name.pc: there are no plugins in $folder"
done
grep -l "$first" "$moved/lib/pkgconfig"/*.pc &&
    fail "a pkg-config file names the place that it came from"
"$moved/bin/tenon" plugins >"$work/log" 2>&1 || fail "tenon plugins of the moved prefix"
if test "$TN_STATIC" != yes; then
    grep -Eq '^tenon.ops .*ops\.so +OK ' "$work/log" ||
        fail "the plugins of the moved prefix are not loaded"
    grep -q "are in $(cd "$moved" && pwd -P)/lib/tenon/0/" "$work/log" ||
        fail "the plugins loaded are those of another place"
    # without its own plugins it finds none, although those of the first place may exist
    mv "$moved/lib/tenon/0" "$moved/lib/tenon/away"
    "$moved/bin/tenon" plugins >"$work/log" 2>&1
    grep -q 'no plugins found' "$work/log" ||
        fail "a moved library loads the plugins of the place that it came from"
    mv "$moved/lib/tenon/away" "$moved/lib/tenon/0"
fi

# ---- two ABIs ----
(cd "$moved" && find . -type f -exec cksum {} + | sort) >"$work/before"
seven install
(cd "$moved" && find . -type f ! -name '*-7*' ! -path '*-7/*' ! -path '*/tenon/7/*' -exec cksum {} \
    + | sort) >"$work/after"
cmp -s "$work/before" "$work/after" || {
    diff "$work/before" "$work/after" >"$work/log"; fail \
    "a second ABI changed files of the first"; }
cat >"$work/program.c" <<'END'
#include <stdio.h>
#include <tenon/tenon.h>

int main(void)
{
    return printf("%s %lld\n", tn_version(), (long long)tn_plugin_count()) < 0 || tn_failed();
}
END
sanitize=
test "$TN_SANITIZERS" = no || sanitize=$TN_SANITIZE
for abi in 0 7; do
    pkg-config --cflags tenon-$abi | grep -q "include/tenon-$abi" ||
        fail "tenon-$abi.pc has the headers of another ABI"
    test "$(readlink "$moved/lib/tenon-$abi/libtenon.so")" = ../libtenon.so.0 ||
        fail "the link for -ltenon of ABI $abi"
    # shellcheck disable=SC2046,SC2086
    ${CC:-cc} $sanitize -o "$work/program" "$work/program.c" \
        $(pkg-config --cflags --libs tenon-$abi) -Wl,-rpath,"$moved/lib" >"$work/log" 2>&1 &&
        "$work/program" >"$work/log" 2>&1 || fail "a program that is compiled with tenon-$abi.pc"
    "$moved/bin/tenon-$abi" version >"$work/log" 2>&1 || fail "tenon-$abi version"
    test -f "$moved/share/man/man7/tenon-plugin-$abi.7" || fail "the man pages of ABI $abi"
done
for name in bin/tenon lib/pkgconfig/tenon.pc lib/pkgconfig/tenon-plugin.pc share/man/man1/tenon.1; \
    do
    readlink "$moved/$name" | grep -q -e -7 ||
        fail "$name is not that of the ABI that was installed last"
done
run install-names "prefix=$moved"
for name in bin/tenon lib/pkgconfig/tenon.pc lib/pkgconfig/tenon-plugin.pc share/man/man1/tenon.1; \
    do
    readlink "$moved/$name" | grep -q -e -0 || fail "make install-names did not take $name"
done

# ---- taken away, one after the other ----
mkdir "$work/kept"
cp -a "$moved"/lib/libtenon.so* "$work/kept" # which is one and the same for both here
seven uninstall
cp -a "$work/kept"/* "$moved/lib"
(cd "$moved" && find . -type f -exec cksum {} + | sort) >"$work/after"
cmp -s "$work/before" "$work/after" || {
    diff "$work/before" "$work/after" >"$work/log"; fail \
    "make uninstall of one ABI changed the other"; }
"$moved/bin/tenon" version >"$work/log" 2>&1 || fail "tenon version when the other ABI is gone"
run uninstall "prefix=$moved" "docdir=$moved/share/doc/tenon-0"
(cd "$moved" && find . -type f -o -type l -o -name '*tenon*') >"$work/log"
test ! -s "$work/log" || fail "make uninstall leaves this"
exit $status
