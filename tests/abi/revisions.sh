# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2154
#
# For diff.sh and kept.sh: two revisions of the headers and the core, as they will be after the
# first release. A is the tree as it is, as if it were released: ABI major 1, interfaces of revision
# 1. B is the next minor: a function at the end of a table, a member at the end of a descriptor.

work=$abs_builddir/tests/abi/revisions.$$
rm -rf "$work"
mkdir -p "$work" || exit 1
trap 'rm -rf "$work"' EXIT
fail() {
    echo "FAILED: $*"
    exit 1
}
minor=$(sed -n 's/^#define TN_ABI_MINOR //p' "$abs_srcdir/sdk/include/tenon/abi.h")
next=$((minor + 1))

# headers FOLDER: a copy of what the headers are made of
headers() {
    mkdir -p "$work/$1/sdk" && cp -R "$abs_srcdir/sdk/api" "$abs_srcdir/sdk/operators" \
        "$abs_srcdir/sdk/include" "$work/$1/sdk" && chmod -R u+w "$work/$1" || exit 1
    # a distribution has the generated ones, too
    rm -f "$work/$1/sdk/include/tenon/host.h" "$work/$1/sdk/include/tenon/ops.h"
}
# edit FOLDER HEADER EXPRESSION...: a header that the expressions leave unchanged is an error
edit() {
    file=$work/$1/sdk/include/tenon/$2
    shift 2
    sed "$@" "$file" >"$work/edited" || exit 1
    ! cmp -s "$file" "$work/edited" || fail "an edit of $file changes nothing: $*"
    cp "$work/edited" "$file"
}
released() {
    edit "$1" abi.h -e 's/^#define TN_ABI_MAJOR 0$/#define TN_ABI_MAJOR 1/'
    for header in "$work/$1"/sdk/include/tenon/*.h; do
        sed 's/\(tenon-interface: tenon\.[a-z]*\) 0/\1 1/' "$header" >"$work/edited" &&
            cp "$work/edited" "$header" || exit 1
    done
}
grown() {
    edit "$1" abi.h -e "s/^#define TN_ABI_MINOR $minor\$/#define TN_ABI_MINOR $next/"
    edit "$1" runtime.h -e "/^TN_END_DECLS/i\\
/* What a layer's added_later returns for \`x\`; \`x\` where it has none. [since: $next] */\\
TN_API int64_t tn_added_later(const char *layer, int64_t x);\\
"
    edit "$1" layer.h -e '/^} tn_layer_def;/i\
    int64_t (*added_later)(int64_t x);'
}
# The files that are made from the headers and the schema.
generated() {
    for generator in operators api; do
        "${PERL:-perl}" "$work/$1/sdk/$generator/generate.pl" --srcdir "$work/$1" \
            --outdir "$work/$1" || exit 1
    done
}
