#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Autoconf's clean-up must not touch the folder core/ (m4/core-folder.m4). The lists of what is
# compiled for size and for speed (configure.ac) name files and folders that exist.
found=$(grep -nE 'rm -r?f( -r)? ([^|;&]* )?core( |$)' "$abs_srcdir/configure")
if test -n "$found"; then
    echo "configure removes \`core\`, which is a folder of ours; m4/core-folder.m4 misses these:"
    echo "$found"
    exit 1
fi
test -d "$abs_srcdir/core" || { echo "core/ is gone"; exit 1; }
named=$(sed -n 's/ *: CFLAGS := \$(CFLAGS.*//p' "$abs_builddir/Makefile" | tr ' ' '\n' |
    sed -e '/_%\.lo$/d' -e 's/%\.lo$//' -e 's/libcore_la-//' -e 's/\.lo$/.c/' -e '/^$/d')
test "$(echo "$named" | wc -l)" -gt 30 || { echo "the Makefile names only: $named"; exit 1; }
for name in $named; do
    test -e "$abs_srcdir/$name" || { echo "configure.ac: there is no $name"; exit 1; }
done
exit 0
