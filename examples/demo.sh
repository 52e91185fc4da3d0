#!/bin/sh
# SPDX-License-Identifier: MIT
#
# `./bootstrap demo` runs this script (through ./run): it trains on the bundled digits on every
# device found. Arguments are passed to digits, whose files go to examples/demo in the build tree.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$here/demo"
cd "$here/demo"
gzip -dc '@data@' >digits.csv
status=0
"$here/digits" digits.csv "$@" || status=$?
echo "the files are in $here/demo"
exit $status
