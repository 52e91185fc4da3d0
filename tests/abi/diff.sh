#!/bin/sh
# SPDX-License-Identifier: MIT
#
# abidiff by the rules of docs/abi.md: a function at the end of a table and a member at the end of
# a struct that may grow are compatible, anything else is not. Tested with an artificial next
# revision and with six changes that break one rule each. If a release of this major is tagged, the
# headers of the tree are also compared with those of the last such release.
set -u
command -v abidiff >/dev/null 2>&1 || {
    echo "SKIP: abidiff is not here (Debian: abigail-tools)"
    exit 77
}
. "$abs_srcdir/tests/abi/revisions.sh"

# probe FOLDER: the libraries that describe its ABI, as plugins and as programs see it
probe() {
    generated "$1"
    for view in plugin program; do
        "${PERL:-perl}" "$abs_srcdir/tests/abi/probe.pl" "$work/$1" $view \
            >"$work/$1/$view.c" || exit 1
        ${CC:-cc} -std=gnu11 -g -O0 -fPIC -shared -nostdlib -w -I"$work/$1/sdk/include" \
            -o "$work/$1/$view.so" "$work/$1/$view.c" || fail "$1: $view.c does not compile"
    done
    "${PERL:-perl}" "$abs_srcdir/tests/abi/probe.pl" "$work/$1" growing >"$work/$1/growing"
}
# compatible OLD NEW: whether binaries compiled for OLD may use NEW
compatible() {
    for view in plugin program; do
        abidiff --leaf-changes-only --no-added-syms "$work/$1/$view.so" "$work/$2/$view.so" \
            >"$work/report" 2>&1
        test $(($? & 3)) -eq 0 || fail "abidiff: $(cat "$work/report")" # 4, 8: differences
        # shellcheck disable=SC2046
        "${PERL:-perl}" "$abs_srcdir/tests/abi/judge.pl" $(cat "$work/$1/growing") \
            <"$work/report" >"$work/wrong" || return 1
    done
}
# broken NAME WORDS HEADER EXPRESSION...: checks that a revision after A with this edit is refused,
# for the reason WORDS
broken() {
    name=$1 words=$2
    shift 2
    headers "$name"
    released "$name"
    edit "$name" "$@"
    probe "$name"
    ! compatible A "$name" || fail "not found: $name"
    grep -q "$words" "$work/wrong" || fail "$name: expected \"$words\", got: $(cat "$work/wrong")"
    rm -rf "${work:?}/$name"
}

headers A
released A
probe A
headers B
released B
grown B
probe B
compatible A B || {
    cat "$work/wrong"
    fail "the next minor is not compatible"
}
! cmp -s "$work/A/sdk/include/tenon/host.h" "$work/B/sdk/include/tenon/host.h" ||
    fail "the revisions are the same"

broken member_inserted 'tn_layer_def: a member in the middle' layer.h \
    -e "s/^    uint64_t data_size; .* of the data struct.*/    int64_t in_the_middle;\n&/"
broken member_of_another_type "'tn_kernel_def::priority' changed" kernel.h \
    -e 's/^    int32_t priority;$/    int64_t priority;/'
broken frozen_struct_grown 'tn_option may not change' value.h \
    -e 's/^} tn_option;/    int64_t more;\n&/'
broken function_inserted 'tn_runtime_table: a member in the middle' runtime.h \
    -e '0,/^\/\* Copies line/s//\/* Inserted. *\/\nTN_API int64_t tn_inserted(int64_t x);\n&/'
broken function_gone 'tn_train_table' train.h -e '/^TN_API int64_t tn_optimizer_group_count(/d'
broken parameter_changed 'tn_optimizer_group_count' train.h \
    -e '/tn_optimizer_group_count(/s/tn_optimizer \*optimizer/&, int64_t group/'

# ---- the last release ----
tag=
test ! -e "$abs_srcdir/.git" ||
    tag=$(cd "$abs_srcdir" && git describe --tags --abbrev=0 --match 'v[1-9]*' 2>/dev/null) || tag=
if test -n "$tag"; then
    mkdir -p "$work/last" &&
        (cd "$abs_srcdir" && git archive "$tag" sdk) | tar -x -C "$work/last" || exit 1
    probe last
    headers now
    probe now
    major() { sed -n 's/^#define TN_ABI_MAJOR //p' "$work/$1/sdk/include/tenon/abi.h"; }
    if test "$(major last)" != "$(major now)"; then
        echo "another major than $tag: nothing to compare"
    elif ! compatible last now; then
        cat "$work/wrong"
        fail "binaries that were compiled for $tag do not fit this tree"
    fi
    echo "compatible with $tag"
fi
echo "a next minor is compatible, six broken ones are found; last release: ${tag:-none yet}"
