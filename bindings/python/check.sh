#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The Python module against the libtenon of the build folder: generated, then its tests. PYTHON
# names another Python; parts that need NumPy or PyTorch are skipped where it has none, visibly.
python=${PYTHON-python3}
library=${abs_builddir-.}/.libs/libtenon.so
source=${abs_srcdir-.}/bindings/python
case ${TN_SANITIZERS-no} in
no | '') ;;
*) echo "SKIP: the library has sanitizers, which Python does not carry"; exit 77 ;;
esac
test -f "$library" || { echo "SKIP: no shared libtenon was built"; exit 77; }
"$python" -c 'import ctypes, sys; sys.exit(sys.version_info < (3, 9))' 2>/dev/null || {
    echo "SKIP: $python is not there, or older than 3.9"
    exit 77
}
sdk=$abs_builddir/sdk # a distribution brings the two files
test -f "$sdk/api.json" || sdk=$abs_srcdir/sdk
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cp -r "$source/tenon" "$source/tests" "$work" && chmod -R u+w "$work" || exit 1
"$python" "$source/generate.py" "$sdk" "$work/tenon/_api.py" || exit 1
TENON_LIBRARY=$library PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$work
export TENON_LIBRARY PYTHONDONTWRITEBYTECODE PYTHONPATH
cd "$work" || exit 1
"$python" -W error::ResourceWarning -m unittest discover -v -s tests || exit 1

# What pip installs is the same, built without a network and without a compiler.
if "$python" -m pip --version >/dev/null 2>&1; then
    mkdir copy && cp -r "$source"/*.py "$source/pyproject.toml" "$source/tenon" copy &&
        chmod -R u+w copy && unset TENON_PLUGIN_PATH_ADD &&
        TENON_SDK=$sdk "$python" -m pip --disable-pip-version-check install -q --no-index \
            --no-deps --target "$work/installed" ./copy || exit 1
    cd / && PYTHONPATH=$work/installed "$python" -c '
import tenon
assert "installed" in tenon.__file__
assert tenon.ones(2).relu().tolist() == [1.0, 1.0]' || exit 1
    echo "pip installed it"
else
    echo "note: $python has no pip; the wheel was not tried"
fi
