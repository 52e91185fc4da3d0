#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Rule 7 of CONTRIBUTING.md: a function that several files use begins with the name of its file or
# of its folder.
here=$(cd "$(dirname "$0")" && pwd)
abs_srcdir=${abs_srcdir-$(cd "$here/../.." && pwd)}
exec "${PERL:-perl}" "$here/names.pl" "$abs_srcdir"
