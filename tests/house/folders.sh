#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Law 7: the folders of core/ and lib/ use each other one way, without circles. The order is in
# folders.pl.
here=$(cd "$(dirname "$0")" && pwd)
abs_srcdir=${abs_srcdir-$(cd "$here/../.." && pwd)}
abs_builddir=${abs_builddir-$abs_srcdir/build}
exec "${PERL:-perl}" "$here/folders.pl" "$abs_srcdir" "$abs_builddir"
