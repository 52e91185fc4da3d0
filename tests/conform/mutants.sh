#!/bin/sh
# SPDX-License-Identifier: MIT
#
# tenon check finds plugins that are wrong in one way (mutants.txt), in the right place and with the
# right words, and lets the same plugin without the error pass. `mutants.sh GLOB` runs some.
set -u
top=${srcdir:-.}
here=$top/tests/conform
place=$(mktemp -d) || exit 99
trap 'rm -rf "$place"' EXIT
failed=0
fail() { echo "FAIL: $*"; failed=1; }
test "${TN_SANITIZERS-no}" = no || {
    echo "SKIP: mutants.sh: what sanitizers say is not what a plugin does"; exit 77; }

TENON_PLUGIN_PATH=$PWD/plugins/.libs
export TENON_PLUGIN_PATH
unset TENON_DEVICE TENON_PLUGIN_PATH_ADD TENON_CHECK MUTANT
# The driver of OpenCL takes longer to start than the command runs here.
TENON_PLUGINS='!backend-opencl'
export TENON_PLUGINS

# The cases of a kind: the installed ones for devices and kernels, the author's for the others.
echo end >"$place/empty.txt"
cases_of() { # FILE
    case $1 in
    device | recorder | relu) echo "$top/tests/oracle" ;;
    *) test -f "$here/mutant_$1.txt" && echo "$here/mutant_$1.txt" || echo "$place/empty.txt" ;;
    esac
}
check() { # FILE TESTS
    tools/tenon check "$place/$1.so" --only "$2" --cases "$(cases_of "$1")" --jobs 1 \
        >"$place/out" 2>&1
}
judge() { # NAME FILE TEST WORDS
    MUTANT=$1 check "$2" "$(test "$3" = load && echo contract/activates || echo "$3")"
    code=$?
    # errors when the plugin is loaded, before the first test
    test "$3" = load && sed 's/^tenon check:.*\.so:/FAIL load /' -i "$place/out"
    test $code -eq 1 && grep "^FAIL *$3 " "$place/out" | grep -qF -- "$4" && return
    fail "$1: exit status $code, and \"$4\" is not what $3 says:"
    grep -E '^(ok|FAIL|skip|tenon)' "$place/out"
}

sed -e '/^#/d' -e '/^$/d' -e 's/ *| */|/g' "$here/mutants.txt" >"$place/table" &&
    test -s "$place/table" || exit 99
# the communicator of `tenon new`, which mutant_comm.c breaks
sed -e 's/@N[A-Z]*@/hub/g; s/@name@/hub/g; /^TN_PLUGIN(/d' \
    "$top/sdk/template/communicator/NAME.c.in" >"$place/hub.h" || exit 99
for file in $(cut -d'|' -f2 "$place/table" | sort -u); do
    # shellcheck disable=SC2086
    $CC -O1 -I"$place" -I"$top/sdk/include" -Isdk/include -shared -fPIC -fvisibility=hidden \
        -o "$place/$file.so" "$here/mutant_$file.c" -lm -lpthread || exit 99
    # the plugin without an error, in all tests of its mutants
    tests=$(grep "^[^|]*|$file|" "$place/table" | cut -d'|' -f3 | sort -u | paste -sd,)
    check "$file" "$tests" ||
        { fail "the right $file:"; cat "$place/out"; }
done
while IFS='|' read -r name file test words what; do
    # shellcheck disable=SC2254
    case $name in ${1-*}) judge "$name" "$file" "$test" "$words" ;; esac
done <"$place/table"
test $failed -eq 0 && echo "PASS: mutants.sh: $(wc -l <"$place/table") mutants"
exit $failed
