#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Law 2, from the outside: installs into an empty folder and then, with pkg-config alone, builds and
# runs both samples of the README (the program under LeakSanitizer), the strict device and the
# kernel pack of examples/, and the recipes (tests/samples/recipes.sh). Rules 1 and 2 on what came
# out.
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
root=$work/root
status=0
fail() {
    echo "FAILED: $1"
    test ! -s "$work/log" || tail -n 30 "$work/log" | sed 's/^/    /'
    status=1
}
die() {
    fail "$1"
    exit 1
}
command -v pkg-config >/dev/null || { echo "SKIP: pkg-config is not here"; exit 77; }
unset MAKEFLAGS MFLAGS MAKELEVEL TENON_PLUGIN_PATH
umask 022

make -C "$abs_builddir" -s install DESTDIR="$root" >"$work/log" 2>&1 || die "make install"
pc=$(find "$root" -name tenon-plugin.pc)
test -n "$pc" || die "tenon-plugin.pc was not installed"
PKG_CONFIG_PATH=$(dirname "$pc")
export PKG_CONFIG_PATH
LD_LIBRARY_PATH=$(dirname "$PKG_CONFIG_PATH")
export LD_LIBRARY_PATH
tenon=$(find "$root" -name tenon -path '*/bin/*')
test -x "$tenon" || die "the command tenon was not installed"
sanitize=
test "$TN_SANITIZERS" = no || sanitize=$TN_SANITIZE
PATH=$(dirname "$tenon"):$PATH
# shellcheck disable=SC2086
set -- ${CC:-cc}

# sample NAME: the block of C that follows `<!-- sample: NAME -->`
sample() {
    awk -v mark="<!-- sample: $1 -->" '$0 == mark { on = 1; next }
        on && /^```c/ { copy = 1; next } copy && /^```/ { exit } copy' \
        "$abs_srcdir/README.md"
}
warn='-Wall -Wextra -pedantic -Werror'

# ---- the program ----
sample program >"$work/program.c"
test -s "$work/program.c" || die "README.md has no sample named program"
leak=
if test "$TN_SANITIZERS" = no; then
    echo 'int main(void) { return 0; }' >"$work/empty.c"
    if "$@" -fsanitize=leak -o "$work/empty" "$work/empty.c" 2>/dev/null &&
        "$work/empty" >/dev/null 2>&1; then
        leak=-fsanitize=leak
    else
        echo "SKIP: LeakSanitizer does not run here; the program runs without it"
    fi
fi
# shellcheck disable=SC2046,SC2086
if "$@" -std=c11 $warn $sanitize $leak -o "$work/program" "$work/program.c" \
    $(pkg-config --cflags --libs tenon) >"$work/log" 2>&1; then
    (cd "$work" && ./program) >"$work/log" 2>&1 || fail "the program of the README, run"
    grep -q '^400  0\.0' "$work/log" || fail "the program of the README does not learn"
    test -s "$work/xor.safetensors" || fail "the program of the README saved nothing"
else
    fail "the program of the README, compiled with pkg-config --cflags --libs tenon"
fi

# ---- plugins ----
out=$work/plugins
mkdir "$out"
# plugin NAME SOURCE...: builds $out/NAME.so and looks at its symbols
plugin() {
    name=$1
    shift
    # shellcheck disable=SC2046,SC2086
    if ! ${CC:-cc} -shared -O2 -g $warn $sanitize -o "$out/$name.so" "$@" \
        $(pkg-config --cflags tenon-plugin) -lm -lpthread >"$work/log" 2>&1; then
        fail "$name, compiled with pkg-config --cflags tenon-plugin"
        return
    fi
    defined=$(${NM:-nm} -D --defined-only "$out/$name.so" | awk '{ print $3 }' |
        grep -vE '^(_init|_fini|_edata|_end|__bss_start|__asan.*|__odr_asan.*)$')
    test "$defined" = tn_plugin_query || {
        : >"$work/log"; fail "$name.so defines more or less than tn_plugin_query: $defined"; }
    ours=$(${NM:-nm} -D --undefined-only "$out/$name.so" | awk '{ print $NF }' | grep '^tn_')
    test -z "$ours" || { : >"$work/log"; fail "$name.so wants symbols of ours: $ours"; }
}
sample plugin >"$work/swish.c"
test -s "$work/swish.c" || die "README.md has no sample named plugin"
plugin swish "$work/swish.c"
for example in strict-device kernel-pack; do
    plugin $example "$abs_srcdir/examples/$example/"*.c
done

plugin rules "$abs_srcdir/examples/rules.c"

TENON_PLUGIN_PATH_ADD=$out
export TENON_PLUGIN_PATH_ADD
tenon plugins >"$work/log" 2>&1 || fail "tenon plugins"
for name in swish strict-device kernel-pack; do
    grep -F "$name.so" "$work/log" | grep -q '\<OK\>' ||
        fail "$name.so was not loaded from TENON_PLUGIN_PATH_ADD"
done
tenon info Swish >"$work/log" 2>&1 || fail "tenon info Swish"
grep -q beta "$work/log" || fail "tenon info Swish does not show its option"

# A program of PyTorch with operators of that plugin, and a script of it, which needs no plugin.
custom=$abs_srcdir/tests/foreign/files/module_custom.pt2
if tenon summary "$abs_srcdir/tests/foreign/files/module_flow.pt2" >/dev/null 2>&1; then
    tenon script "$custom" --input 2,3 --dtype float64 --out "$work/custom.script" \
        >"$work/log" 2>&1 || fail "tenon script with the rules of rules.so"
    TENON_PLUGIN_PATH_ADD='' tenon graph "$work/custom.script" --input 2,3 --dtype float64 \
        >"$work/log" 2>&1 ||
        fail "tenon graph of a script without rules.so"
    TENON_PLUGIN_PATH_ADD='' tenon summary "$custom" >"$work/log" 2>&1 &&
        fail "tenon summary without rules.so"
    grep -q 'acme.scale.default (2)' "$work/log" || fail "the functions without a rule"
fi

# ---- a program that uses them ----
cat >"$work/uses.c" <<'END'
#include <stdio.h>
#include <tenon/tenon.h>

int main(int argc, char **argv)
{
    static const float values[2] = { 0.0f, 2.0f };
    double sum = 0;
    if (argc > 1 && tn_set_default_device(argv[1]) != TN_OK)
        goto out;
    tn_module *net = tn_module_new("Sequential(Linear(2, 3), Swish(beta=%g), Linear(3, 1))", 0.5);
    {
        TN_SCOPE;
        tn_tensor *x = tn_tensor_from(values, TN_F32, TN_SHAPE(1, 2));
        tn_tensor *y = tn_sum(tn_module_call(net, x));
        tn_backward(y);
        sum = tn_item(y);
    }
    tn_module_drop(net);
out:
    if (tn_failed()) {
        fprintf(stderr, "%s\n", tn_error_text());
        return 1;
    }
    printf("%g\n", sum);
    return 0;
}
END
# shellcheck disable=SC2046,SC2086
if "$@" -std=c11 $warn $sanitize -o "$work/uses" "$work/uses.c" \
    $(pkg-config --cflags --libs tenon) >"$work/log" 2>&1; then
    "$work/uses" cpu >"$work/log" 2>&1 || fail "a network with the layer of the README on the cpu"
    "$work/uses" strict >"$work/log" 2>&1 ||
        fail "a network with the layer of the README on the strict device"
else
    fail "a program that uses Swish does not compile"
fi

# ---- the recipes of the guides ----
(unset TENON_PLUGIN_PATH_ADD; sh "$abs_srcdir/tests/samples/recipes.sh" "$root") || status=1
exit $status
