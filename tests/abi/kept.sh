#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Plugin binaries that were kept from one revision, loaded by the core of another: each works where
# docs/abi.md promises it, and is refused with a message elsewhere. The cores of revisions A and B
# are compiled here, without optimization; kept_plugin.c is compiled against the headers of both.
set -u
test "${TN_STATIC-no}" = no || { echo "SKIP: a static build loads no files"; exit 77; }
test "${TN_SANITIZERS-no}" = no || { echo "SKIP: two more cores, without the sanitizer"; exit 77; }
. "$abs_srcdir/tests/abi/revisions.sh"
cc=${CC:-cc}
unset TENON_DEVICE TENON_PLUGIN_PATH_ADD TENON_PLUGINS TENON_LOG
TENON_PLUGIN_PATH=$work/none
export TENON_PLUGIN_PATH
mkdir "$work/none"
chmod 755 "$work" "$work/none"
variable() { sed -n "s/^$1 = //p" "$abs_builddir/Makefile"; }
eval "set -- $(variable DEFS)"
defs=$work/defs
printf '%s\n' "$@" | sed "s/'/'\\\\''/g; s/.*/'&'/" >"$defs"

# core FOLDER: libtenon.so and the program. Paths are relative, so that a compiler's cache knows the
# files of the next run.
core() {
    cp -R "$abs_srcdir/core" "$abs_srcdir/lib" "$work/$1" && chmod -R u+w "$work/$1" || exit 1
    test ! -f "$work/added.c.$1" || cp "$work/added.c.$1" "$work/$1/lib/library/added.c"
    generated "$1"
    (
        cd "$work/$1" || exit 1
        {
            cat "$defs"
            printf '%s\n' -std=gnu11 -O0 -fPIC -w -fvisibility=hidden -I. -Isdk/include
            printf '%s\n' "'-DTN_PLUGIN_DIR=\"none\"'" -c
        } >flags
        find core lib -name '*.c' -print0 | xargs -0 -P "$(nproc 2>/dev/null || echo 2)" -I FILE \
            sh -c "$cc @flags -o FILE.o FILE" || exit 1
        # shellcheck disable=SC2046
        $cc -shared -Wl,-soname,libtenon.so.0 -o libtenon.so.0 $(find core lib -name '*.o') \
            $(variable LIBLTDL) $(variable LIBM) -lpthread -ldl || exit 1
        # shellcheck disable=SC2086
        $cc -std=gnu11 -w ${2-} -Isdk/include -o program "$abs_srcdir/tests/abi/kept_program.c" \
            ./libtenon.so.0 -Wl,-rpath,"$PWD"
    ) >"$work/log" 2>&1 || fail "the core of revision $1: $(tail -n 20 "$work/log")"
}
# plugin NAME HEADERS FLAG...: $work/NAME.so
plugin() {
    name=$1 folder=$2
    shift 2
    $cc -std=gnu11 -O0 -fPIC -shared -w "$@" -I"$work/$folder/sdk/include" -o "$work/$name.so" \
        "$abs_srcdir/tests/abi/kept_plugin.c" >"$work/log" 2>&1
}
compiled() { plugin "$@" || fail "$1: $(cat "$work/log")"; }
# expect HOST PLUGIN WORDS: what the program of that host prints
expect() {
    "$work/$1/program" "$work/$2.so" "$work/file.kept" >"$work/said" 2>&1
    grep -q -e "$3" "$work/said" ||
        fail "plugin $2 in host $1: expected \"$3\", got: $(cat "$work/said")"
}

headers A
released A
headers B
released B
grown B
headers draft
generated draft
cat >"$work/added.c.B" <<'END_OF_C'
#include "core/plugin/internal.h"

#include <tenon/layer.h>

int64_t tn_added_later(const char *layer, int64_t x)
{
    const tn_head *head = tn_registry_find(TN_KIND_tn_layer_def, layer);
    const tn_layer_def *def = (const tn_layer_def *)head;

    return def && def->added_later ? def->added_later(x) : x;
}
END_OF_C
core A
core B -DADDED

compiled old A
expect A old '^works$'
expect B old 'works, added_later(1) = 1$' # the member that it does not have is NULL
compiled new B -DNEW
expect B new 'works, added_later(1) = 3$'
expect A new 'REFUSED: compile the plugin with -DTN_TARGET .* is older .* interface tenon.runtime'
compiled plain B
expect B plain 'works, added_later(1) = 1$'
expect A plain 'REFUSED: .* interface tenon.runtime' # it may call anything
compiled target B -DTN_TARGET="$minor"
expect A target '^works$'
expect B target 'works, added_later(1) = 1$'
compiled member B -DTN_TARGET="$minor" -DMEMBER # the old host ignores what it does not know
expect A member '^works$'
expect B member 'works, added_later(1) = 3$'
! plugin poisoned B -DTN_TARGET="$minor" -DNEW || fail "a call of a newer function compiles"
grep -q 'poisoned.*tn_added_later' "$work/log" || fail "not poisoned: $(cat "$work/log")"
compiled flag B -DTN_TARGET="$minor" -DNEW_FLAG
expect A flag 'OK: 1 contribution was refused: .*Flagged: flags: bits 0x80000000 are unknown'
expect A flag '^works$' # its other contributions stay
compiled draft draft
expect A draft 'REFUSED: the host has another ABI than this plugin was compiled for'

# ---- the tree as it is, and binaries of releases ----
$cc -std=gnu11 -w -I"$work/draft/sdk/include" -o "$work/draft/program" \
    "$abs_srcdir/tests/abi/kept_program.c" "$abs_builddir/.libs/libtenon.so" \
    -Wl,-rpath,"$abs_builddir/.libs" || exit 1
expect draft draft '^works$'
expect draft old 'REFUSED: the host has another ABI than this plugin was compiled for'
kept=0
for file in "$abs_srcdir"/tests/abi/kept/"$(uname -m)"/*.so; do
    test -f "$file" || continue
    cp "$file" "$work/kept.so" && chmod 644 "$work/kept.so"
    expect draft kept '^works$'
    kept=$((kept + 1))
done
echo "6 plugin binaries in three hosts; kept from releases: $kept"
