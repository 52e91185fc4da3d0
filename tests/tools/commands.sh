# SPDX-License-Identifier: MIT
#
# Included by the tests of commands. Sets up a temporary folder and the functions check, also, same.
set -u
tenon=$abs_builddir/tools/tenon
here=$(cd "${abs_srcdir:-$srcdir}" && pwd)/tests/tools
files=$here/files
PERL=${PERL:-perl}
TENON_PLUGIN_PATH=$abs_builddir/plugins/.libs
TENON_DEVICE=cpu
export TENON_PLUGIN_PATH TENON_DEVICE
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
bad=0
# The plugins that always come with Tenon are not asked for: a test that finds them missing fails.
"$tenon" info safetensors >/dev/null 2>&1 || { echo "SKIP: this build lacks safetensors"; exit 77; }

complain() {
    echo "FAILED: $1"
    cat out err
    bad=1
}

# check CODE PATTERN ARGUMENT...: runs tenon and checks that its exit status is CODE and that its
# output or its messages match PATTERN (grep -E; "": not checked)
check() {
    wanted=$1 pattern=$2
    shift 2
    "$tenon" "$@" >out 2>err </dev/null
    code=$?
    test $code -eq "$wanted" || complain "tenon $*: status $code, not $wanted"
    test -z "$pattern" || grep -Eq -e "$pattern" out err || complain "tenon $*: no \"$pattern\""
}

# also PATTERN...: checks that output or messages of the last check match these patterns, too
also() {
    for pattern in "$@"; do
        grep -Eq -e "$pattern" out err || complain "no \"$pattern\" in"
    done
}

# same KEY [PATH]: checks that the last output is JSON, and that it, or its part PATH, equals the
# part KEY of expected.json, which PyTorch computed (compare.pl)
same() {
    "$PERL" "$here/compare.pl" "$files/expected.json" "$@" <out || complain "differs from PyTorch"
}
