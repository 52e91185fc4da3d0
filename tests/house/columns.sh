#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Lines of scripts, of C and of kernels for GPUs have at most 100 columns. clang-format breaks lines
# of C, but no strings and macros. Generated files, which are in the folders of a distribution, are
# not checked.
cd "$abs_srcdir" || exit 99
# Scripts in shell and Python, by their first line where the name does not say it; .ci is in no
# distribution.
places="bench bindings examples plugins sdk tests tools"
scripts="bootstrap build-aux/embed build-aux/static-plugins build-aux/summary run.in"
scripts="$scripts sdk/operators/generate.pl $(find .ci -type f 2>/dev/null)"
# shellcheck disable=SC2086
scripts="$scripts $(find $places -name '*.sh' -type f -o -name '*.py' -type f)"
# shellcheck disable=SC2086
scripts="$scripts $(find $places -type f ! -name '*.*' ! -path '*/corpus/*' -exec \
    awk 'FNR == 1 && /^#!.*(sh|python3?)$/ { print FILENAME } { nextfile }' {} +)"
scripts="$scripts $(find plugins -name '*.cl' -type f -o -name '*.cu' -type f)"
sources=$(find core lib plugins sdk tools tests bench examples -name '*.[ch]' -type f |
    xargs grep -LE '^ \* (Made|Written|Numbers of .* written) by [a-z_-]+\.(py|pl)' |
    xargs grep -LE 'Generated .*by sdk/(operators|api)/generate\.pl')
scripts="$scripts $sources"
# shellcheck disable=SC2086
long=$(LC_ALL=C.UTF-8 awk 'length($0) > 100 { print FILENAME ":" FNR }' $scripts) || exit 99
if test -n "$long"; then
    echo "lines of more than 100 columns:"
    echo "$long"
    exit 1
fi
