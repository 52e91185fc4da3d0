#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Rule 17: with --enable-static-plugins the command has the core and all plugins inside, and needs
# neither libtenon nor a plugin file.
cd "$abs_builddir" || exit 1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
status=0
mkdir "$work/none"
if objdump -p tools/tenon | grep -q 'NEEDED.*libtenon'; then
    echo "tools/tenon needs libtenon"
    status=1
fi
cp tools/tenon "$work/tenon"
TENON_PLUGIN_PATH=$work/none "$work/tenon" plugins >"$work/log" || status=1
cat "$work/log"
for name in $TN_STATIC_NAMES; do
    test "$(nm tools/tenon | grep -c "${name}_LTX_tn_plugin_query\$")" = 1 || {
        echo "tools/tenon has no $name"; status=1; }
done
lines=$(grep -c '(static)' "$work/log")
test "$lines" -eq "$(echo $TN_STATIC_NAMES | wc -w)" || {
    echo "$lines plugins are reported as (static), not: $TN_STATIC_NAMES"; status=1; }
exit $status
