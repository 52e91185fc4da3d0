#!/bin/sh
# SPDX-License-Identifier: MIT
#
# What make mutate may change in a source: each kind of change once, and nothing in comments,
# strings, preprocessor lines, assertions or the words of a message.
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cat >"$work/source.c" <<'END'
#define LIMIT (1 + 2)
/* a < b && c == 3 */
static int f(int a, const int *b)
{
    int sum = 7;
    assert(a > 0 && b != NULL);
    tn_log(TN_LOG_WARNING, "a + b is %d", a + 1);
    if (a < *b)
        return tn_fail(TN_ERR_VALUE, "a is %d; expected %d", a + 2, b[0] - 1);
    sum += g(a, sum) & -a;
    h(sum);
    while (sum > LIMIT || flag)
        sum--;
    return sum << a;
}
END
cat >"$work/wanted" <<'END'
5 constant: 7 -> 8
5 constant: 7 -> 6
8 condition: (a < *b) -> (!(a < *b))
8 compare: < -> <=
8 compare: < -> >=
9 exit: return tn_fail(TN_ERR_VALUE, "a is %d; expected %d", a + 2, b[0] - 1); -> ;
10 statement: sum += g(a, sum) & -a; -> ;
10 arithmetic: += -> -=
10 arithmetic: += -> =
10 arguments: a, sum -> sum, a
10 bits: & -> |
10 sign: - -> 
11 statement: h(sum); -> ;
12 condition: (sum > LIMIT || flag) -> (!(sum > LIMIT || flag))
12 compare: > -> >=
12 compare: > -> <=
12 logic: || -> &&
13 statement: sum--; -> ;
13 step: -- -> ++
14 bits: << -> >>
END
"${PERL:-perl}" -e '
    require "$ARGV[0]/tests/mutate/changes.pl";
    open my $in, "<", $ARGV[1] or die;
    local $/;
    my $text = <$in>;
    for (changes_of($text)) {
        my $line = 1 + (substr($text, 0, $_->{at}) =~ tr/\n//);
        print "$line $_->{kind}: ", substr($text, $_->{at}, $_->{length}), " -> $_->{with}\n";
    }' "$abs_srcdir" "$work/source.c" >"$work/got" || exit 1
diff -u "$work/wanted" "$work/got" || exit 1

# The sources that it takes, and their objects: in libraries, and in each program of its own.
pick() { "${PERL:-perl}" -e 'require shift; print "$_\n" for eval shift' \
    "$abs_srcdir/tests/mutate/cover.pl" "$@"; }
(cd "$abs_srcdir" && find core lib plugins tools sdk/conform -name '*.[ch]' | LC_ALL=C sort) \
    >"$work/wanted"
pick 'product_files(shift)' "$abs_srcdir" >"$work/got"
diff -u "$work/wanted" "$work/got" || exit 1
grep -q '^tools/train/' "$work/got" && grep -q '^plugins/backend-cpu/conv/' "$work/got" || exit 1
mkdir -p "$work/core/op/.libs" "$work/sdk/conform"
for object in core/op/.libs/libcore_la-run.o core/op/libcore_la-run.lo core/op/.libs/a-rerun.o \
    sdk/conform/tools_tenon-run.o sdk/conform/tests_op_test_x-run.o sdk/conform/a-test_run.o; do
    : >"$work/$object"
done
cat >"$work/wanted" <<END
$work/core/op/.libs/libcore_la-run.o
$work/sdk/conform/tests_op_test_x-run.o
$work/sdk/conform/tools_tenon-run.o
END
pick 'map { objects_of($ARGV[0], $_) } "core/op/run.c", "sdk/conform/run.c"' "$work" >"$work/got"
diff -u "$work/wanted" "$work/got" || exit 1
