#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Runs every fuzz target over its corpus.
status=0
for target in tests/fuzz/fuzz_*; do
    test -f "$target" && test -x "$target" || continue
    case $target in *.o | *.c | *.log | *.trs) continue ;; esac
    name=${target##*/fuzz_}
    test -f "$srcdir/tests/fuzz/fuzz_$name.c" || continue # left over in an old build folder
    corpus=$srcdir/tests/fuzz/corpus/$name
    if ! test -d "$corpus"; then
        echo "$name: there is no folder tests/fuzz/corpus/$name"
        status=1
        continue
    fi
    # libFuzzer runs files without changing them; the replayer takes them as well.
    "$target" "$corpus"/* || { echo "$name: an input of the corpus fails"; status=1; }
done
exit $status
