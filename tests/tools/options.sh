#!/bin/sh
# SPDX-License-Identifier: MIT
#
# What the help of a command promises: no command refuses an option that its help or its usage line
# lists, --help is one wherever it is given, and the man page has all options and all kinds of
# `tenon new`.
. "${abs_srcdir:-$srcdir}/tests/tools/commands.sh"

# Words of a command that does not know an option. Each command refuses to run, for other reasons.
strange='unknown (option|setting)|unexpected argument|is no option|too many arguments'
"$tenon" complete >commands
sed 's/\\f[A-Z]//g; s/\\-/-/g' "$abs_srcdir/docs/man/tenon.1" >man
count=0
while read -r name; do
    "$tenon" help "$name" >help
    sed -n 's/^  \(--[a-z][a-z-]*\) \{0,1\}\([^ ]*\).*/\1 \2/p' help >listed
    sed -n '/^usage/,/^$/s/.*\[\(--json\)\].*/\1/p' help >>listed
    grep -q '^--help' listed || complain "$name: its help does not list --help"
    # Trainings look at all options only if those that they need are there.
    set --
    case $name in
    train | finetune) set -- 'Linear(1, 1)' --data 'Nothing()' --out run ;;
    sweep) set -- 'Linear(1, 1)' --data 'Nothing()' --out run --set lr=1:2 ;;
    esac
    while read -r option value; do
        count=$((count + 1))
        grep -qw -e "$option" man || complain "tenon.1 lacks $option of $name"
        mkdir each && cd each || exit 1
        if test -n "$value"; then
            "$tenon" "$name" "$@" "$option" "$value" >../out 2>../err </dev/null
        else
            "$tenon" "$name" "$@" "$option" >../out 2>../err </dev/null
        fi
        cd .. && rm -rf each
        grep -Eq -e "$strange" err && complain "$name refuses $option, which its help lists"
    done <listed
    test "$name" = profile || test "$name" = run || check 0 '^usage: ' "$name" something --help
    check 0 '^usage: ' "$name" --help something
done <commands
"$tenon" help new | sed -n '/^Kinds/,/^$/s/^  \([a-z]*\) .*/\1/p' >kinds
test "$(wc -l <kinds)" -ge 15 || complain "only $(wc -l <kinds) kinds of tenon new"
while read -r kind; do
    sed -n '/^\.BI new /,/^\.TP/p' man | grep -qw "$kind" || complain "tenon.1 lacks the kind $kind"
done <kinds
test $count -gt 100 || complain "only $count options were tried"
# a program that a command runs has its own options
check 0 '^usage: tenon eval' profile --no-page eval --help
exit $bad
