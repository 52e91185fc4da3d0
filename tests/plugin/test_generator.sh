#!/bin/sh
# SPDX-License-Identifier: MIT
#
# sdk/api/generate.pl: it names file and line of what breaks the rules of the headers, and a checked
# table has a check.
set -u
work=$(mktemp -d "$abs_builddir/tests/plugin/place.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
bad=0
mkdir -p "$work/sdk/include/tenon"
header=$work/sdk/include/tenon/x.h
# A kind of contributions needs its number to be in the list of kinds.
sed 's/TN_KIND_END =/TN_KIND_tn_greeting_def = 95,\n    &/' "$abs_srcdir/sdk/include/tenon/abi.h" \
    >"$work/sdk/include/tenon/abi.h"

run() { $PERL "$abs_srcdir/sdk/api/generate.pl" --srcdir "$work" --outdir "$work/out" \
    >"$work/said" 2>&1; }

# expect PATTERN: the header on standard input is refused with these words
expect() {
    { printf '/* x\n * tenon-interface: tenon.x 0 */\n'; cat; } >"$header"
    if run; then echo "accepted, and \"$1\" was wanted"; bad=1; fi
    grep -Eq -e "$1" "$work/said" || { echo "\"$1\" was not said, but:"; cat "$work/said"; bad=1; }
}

expect '^sdk/include/tenon/x\.h:4: tn_x has no comment' <<'END'

TN_API void tn_x(void);
END
expect '^sdk/include/tenon/x\.h:4: the tag \[some-thread\] is not in the list' <<'END'
/* Does x. [some-thread] */
TN_API void tn_x(void);
END
expect 'x\.h:6: tn_y has no comment' <<'END'
/* Does x. */
TN_API void tn_x(void);

TN_API void tn_y(void);
END
expect 'x\.h:4: tn_x takes `\.\.\.` and has no sibling tn_xv' <<'END'
/* Does x. */
TN_API void tn_x(const char *format, ...);
END
expect 'x\.h:4: tn_x: \[null-ok: z\] names no parameter' <<'END'
/* Does x. [null-ok: z] */
TN_API void tn_x(int *y);
END
expect 'x\.h:4: tn_x: \[inout: z\] names no parameter' <<'END'
/* Does x. [inout: z] */
TN_API void tn_x(int *y);
END
expect 'x\.h: the value of TN_X is no number' <<'END'
enum { TN_X = sizeof(int) };
/* Does x. */
TN_API void tn_x(int *y);
END
expect 'tn_x is declared twice' <<'END'
/* Does x. */
TN_API void tn_x(int *y);
TN_API void tn_x(int *y);
END
expect 'two thread tags' <<'END'
/* Does x. [stream] [main] */
TN_API void tn_x(int *y);
END

# A [main] function, one with a callback, one with an array, in one table.
{
    printf '/* x\n * tenon-interface: tenon.x 3 */\n'
    cat <<'END'
/* Does x, on elements in [0, n). [main] [null-ok: user] */
TN_API int64_t tn_x(const int *y, tn_status (*part)(void *user, int64_t begin),
                    void *user, const uint64_t state[2]);
END
} >"$header"
run || { cat "$work/said"; bad=1; }
for words in '!tn__boundary_main("tn_x"' 'if (y == NULL)' 'tn__boundary_no_pointer("tn_x", "y"' \
    'if (part == NULL)' \
    'if (state == NULL)' 'return -1;' '{ "tenon.x", 3,'; do
    grep -Fq -e "$words" "$work/out/lib/library/host_tables.c" || {
        echo "host_tables.c lacks: $words"; bad=1; }
done
for words in 'const tn__kind tn__kind_greeting;' '    &tn__kind_greeting,'; do
    grep -Fq -e "$words" "$work/out/lib/library/kind_list.c" || {
        echo "kind_list.c lacks: $words"; bad=1; }
done
if grep -q 'user == NULL' "$work/out/lib/library/host_tables.c"; then
    echo "a [null-ok] argument is checked"; bad=1; fi
grep -q '^tn_x$' "$work/out/lib/libtenon.sym" || { echo "libtenon.sym lacks tn_x"; bad=1; }

expect 'x\.h:6: tn_y is in ABI minor 2 and follows one of 3' <<'END'
/* Does x. [since: 3] */
TN_API void tn_x(int *y);
/* Does y. [since: 2] */
TN_API void tn_y(int *y);
END

# How many functions of the table a plugin for an older minor requires, and which it can call.
{
    printf '/* x\n * tenon-interface: tenon.x 1 */\n'
    cat <<'END'
/* Does x. */
TN_API void tn_x(int *y);
/* Does y. [since: 2] */
TN_API int tn_y(int *y);
/* Does z. [since: 3] */
TN_API void tn_zv(int n, va_list args);
TN_API void tn_z(int n, ...);
END
} >"$header"
run || { cat "$work/said"; bad=1; }
cat >"$work/age.c" <<'END'
#define TN_BUILD_PLUGIN 1
#include <tenon/query.h>
#define TENON_PLUGIN_H
#include "sdk/include/tenon/x.h"
#include "out/sdk/include/tenon/host.h"
struct tn_host_links tn_host_links;
#ifdef CALLS
int calls(int *y) { return tn_y(y); }
#endif
int main(void) { return (int)(tn_plugin_needs()[0].size / sizeof(void *)); }
END
compiled() {
    # shellcheck disable=SC2086
    $CC ${TN_SANITIZE-} -w "$@" -I"$work" -I"$abs_builddir/sdk/include" \
        -I"$abs_srcdir/sdk/include" -o "$work/age" "$work/age.c" >"$work/said" 2>&1
}
for age in 1:1 2:2 3:3 4:3; do
    compiled "-DTN_TARGET=${age%:*}" || { cat "$work/said"; bad=1; }
    "$work/age"
    needed=$?
    test $needed -eq "${age#*:}" || {
        echo "for minor ${age%:*} a table of $needed functions is needed, not ${age#*:}"; bad=1; }
done
compiled -DTN_TARGET=2 -DCALLS || { cat "$work/said"; bad=1; }
if compiled -DTN_TARGET=1 -DCALLS; then echo "a call of a newer function compiles"; bad=1; fi
grep -q 'poisoned' "$work/said" || { cat "$work/said"; bad=1; }
exit $bad
