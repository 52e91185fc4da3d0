#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Rule 4 of CONTRIBUTING.md: error messages have one pattern.
here=$(cd "$(dirname "$0")" && pwd)
abs_srcdir=${abs_srcdir-$(cd "$here/../.." && pwd)}
exec "${PERL:-perl}" "$here/messages.pl" "$abs_srcdir"
