#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Autoconf's clean-up must not touch the folder core/ (m4/core-folder.m4).
found=$(grep -nE 'rm -r?f( -r)? ([^|;&]* )?core( |$)' "$abs_srcdir/configure")
if test -n "$found"; then
    echo "configure removes \`core\`, which is a folder of ours; m4/core-folder.m4 misses these:"
    echo "$found"
    exit 1
fi
test -d "$abs_srcdir/core" || { echo "core/ is gone"; exit 1; }
exit 0
