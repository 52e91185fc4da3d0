#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Operators that grow (docs/abi.md, "Operators grow"): twenty operators get options, inputs and
# outputs of each kind in version 2. Callers, operators and kernels of both versions meet, the
# callers compiled with each level of optimization.
set -u
test "${TN_STATIC-no}" = no || { echo "SKIP: a static build loads no files"; exit 77; }
test "${TN_SANITIZERS-no}" = no || { echo "SKIP: plugins without the sanitizer"; exit 77; }
cc=${CC:-cc}
work=$abs_builddir/tests/abi/grow.$$
rm -rf "$work"
trap 'rm -rf "$work"' EXIT
fail() {
    echo "FAILED: $*"
    exit 1
}

# Version 1 lacks each input, output and option that a line `since` follows.
for version in 1 2; do
    folder=$work/schema$version/sdk/operators
    mkdir -p "$folder" "$work/plugins$version" && cp "$abs_srcdir"/sdk/operators/*.ops "$folder" ||
        exit 1
    older='$!N; /\n  since 2$/d; P; D'
    test $version = 1 || older=
    sed "$older" "$abs_srcdir/tests/abi/grown.ops" >"$folder/grown.ops" || exit 1
    "${PERL:-perl}" "$abs_srcdir/sdk/operators/generate.pl" --srcdir "$work/schema$version" \
        --outdir "$work/schema$version" || fail "the schema of version $version"
    grep -q 'since 2' "$folder/grown.ops" && found=2 || found=1
    test $found = $version || fail "version $version of the schema has the lines of version $found"
done
includes="-I$abs_builddir/sdk/include -I$abs_srcdir/sdk/include -I$abs_srcdir/tests/abi"

# plugin FOLDER NAME VERSION FLAG...: a plugin with the schema of a version
plugin() {
    out=$work/$1/$2.so version=$3
    shift 3
    # shellcheck disable=SC2086
    $cc -std=gnu11 -O1 -fPIC -shared -w "$@" -DTN_TARGET="$version" \
        -I"$work/schema$version/sdk/include" -I"$work/schema$version/plugins/ops" $includes \
        -o "$out" "$abs_srcdir/tests/abi/grown_plugin.c" || fail "$out does not compile"
}
for version in 1 2; do
    plugin "plugins$version" ops "$version"
    mkdir -p "$work/pack1" "$work/pack2"
    plugin "pack$version" pack "$version" -DPACK
done
chmod -R go-w "$work"

# program VERSION LEVEL: a caller, which knows all of the schema and uses what its version had
program() {
    # shellcheck disable=SC2086
    $cc -std=gnu11 "-O$2" -w -DTN_TARGET="$1" -I"$work/schema2/sdk/include" $includes \
        -o "$work/program$1.$2" "$abs_srcdir/tests/abi/grown_program.c" \
        "$abs_builddir/.libs/libtenon.so" -Wl,-rpath,"$abs_builddir/.libs" -lm ||
        fail "the program of version $1 does not compile with -O$2"
}
# meet VERSION LEVEL HOST PACK
meet() {
    add=$work/plugins$3
    test "$4" = 0 || add=$add:$work/pack$4
    TENON_PLUGIN_PATH_ADD=$add "$work/program$1.$2" "$3" "$4" >"$work/said" 2>&1 ||
        fail "caller of version $1 (-O$2), operators of $3, kernels of $4: $(cat "$work/said")"
    met=$((met + $(sed -n 's/ calls$//p' "$work/said")))
}
TENON_LOG=error
export TENON_LOG
met=0
for level in 0 1 2 3; do
    for version in 1 2; do
        program "$version" "$level"
        for pair in '1 0' '2 0' '1 1' '2 1' '2 2'; do
            # shellcheck disable=SC2086
            meet "$version" "$level" $pair
        done
    done
done

# ---- what people are told ----
TENON_PLUGIN_PATH_ADD=$work/plugins2:$work/pack1
export TENON_PLUGIN_PATH_ADD
said=$("$abs_builddir/run" tenon why org.tenon.grownpack 2>&1 | tr -s ' \n' ' ')
echo "$said" | grep -q 'does not know the option more, which version 2 of grown_[a-z_]* added' ||
    fail "tenon why says nothing about options that a kernel does not know: $said"
said=$("$abs_builddir/run" tenon info grown_input 2>&1 | tr -s ' \n' ' ')
echo "$said" | grep -q 'does not know the input late, which version 2 of grown_input added' ||
    fail "tenon info says nothing about an input that a kernel does not know: $said"
echo "$met calls between two versions"
