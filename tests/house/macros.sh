#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Bodies of macros have at most 10 lines.
here=$(cd "$(dirname "$0")" && pwd)
abs_srcdir=${abs_srcdir-$(cd "$here/../.." && pwd)}
exec "${PERL:-perl}" "$here/macros.pl" "$abs_srcdir"
