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
    # A wheel with the library and its plugins, in an environment of its own: nothing of the build
    # folder is found from there. The tree has the shape of an installed one.
    abi=${TN_ABI-0} && unset TENON_LIBRARY TENON_PLUGIN_PATH PYTHONPATH
    mkdir -p "$work/tree/lib/tenon/$abi" "$work/tree/share" "$work/wheel" &&
        cp -L "$abs_builddir"/.libs/libtenon.so.[0-9] "$work/tree/lib" &&
        for plugin in ops quant layers optim formats data print checkpoint gradcheck backend-cpu; do
            cp "$abs_builddir/plugins/.libs/$plugin.so" "$work/tree/lib/tenon/$abi" || exit 1
        done && strip -S "$work/tree/lib/"*.so.* "$work/tree/lib/tenon/$abi/"*.so &&
        TENON_SDK=$sdk "$python" "$work/copy/bundle.py" "$work/tree" "$work/wheel" || exit 1
    if "$python" -m venv "$work/venv" >/dev/null 2>&1; then
        "$work/venv/bin/pip" --disable-pip-version-check install -q --no-index \
            "$work"/wheel/tenon-*-manylinux_*.whl && rm -rf "$work/tree" &&
            "$work/venv/bin/python" -c '
import tenon
assert "venv" in tenon.__file__
net = tenon.nn.Linear(2, 3)
net(tenon.ones(4, 2)).sum().backward()
assert net.bias.grad.tolist() == [4.0, 4.0, 4.0]
mapped = open("/proc/self/maps").read()
import ast, inspect, os
folder = os.path.dirname(tenon.__file__)
stubs = {name: ast.parse(open(os.path.join(folder, name)).read())
         for name in ("__init__.pyi", "optim.pyi", "nn/__init__.pyi")}
classes = {x.name: x for x in stubs["nn/__init__.pyi"].body if isinstance(x, ast.ClassDef)}
assert set(classes) >= {x for x in tenon.nn._names(tenon.nn._LAYERS) if x.isidentifier()}
made = classes["Linear"].body[0].args
assert [a.arg for a in made.args] == ["self", "in_features", "out_features", "bias"]
assert [ast.unparse(a.annotation) for a in made.args[1:]] == ["int", "int", "Optional[bool]"]
functions = {x.name: x for x in stubs["__init__.pyi"].body if isinstance(x, ast.FunctionDef)}
assert ast.unparse(functions["relu"].returns) == "Tensor" and len(functions) > 500
assert "Adam" in {x.name for x in stubs["optim.pyi"].body if isinstance(x, ast.FunctionDef)}
assert list(inspect.signature(tenon.sum).parameters)[0] == "x"
for name in ("lib/libtenon.so", "lib/linked/libltdl.so", "backend-cpu.so"):
    assert any(name in line and "venv" in line for line in mapped.splitlines()), name' || exit 1
        echo "pip installed the wheel with the library"
    else
        echo "note: $python makes no environment (venv); the wheel with the library was not tried"
    fi
else
    echo "note: $python has no pip; the wheel was not tried"
fi
