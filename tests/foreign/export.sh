#!/bin/sh
# SPDX-License-Identifier: MIT
#
# tenon convert of networks to files of other frameworks: what it prints, tensors in a file beside,
# names of the state, and what it refuses. If PYTHON (python3) has onnx and onnxruntime, or PyTorch,
# they judge the files (export_cases.py).
. "${abs_srcdir:-$srcdir}/tests/tools/commands.sh"
source=$(cd "${abs_srcdir:-$srcdir}" && pwd)
build=${abs_builddir-.}
net='Sequential(Conv2d(3, 4, 3), BatchNorm2d(4), ReLU(), Flatten(), Linear(144, 2))'

# ---- ONNX ----
check 0 '^written     net.onnx$' convert "$net" net.onnx --input 1,3,8,8
check 0 '' convert net.onnx one.npz
check 0 '"1.running_var"' inspect one.npz --json
check 0 '^program     ' convert net.onnx copy.onnx
cmp net.onnx copy.onnx || complain 'a copy of the model differs'
check 0 '' bench net.onnx --input 1,3,8,8 --seconds 0.01
TENON_FOREIGN_ONNX_INSIDE_MAX=100 "$tenon" script "$net" --input 1,3,8,8 --out net.script >/dev/null
check 0 '' convert net.script inside.onnx
test ! -e inside.onnx.data || complain 'small tensors are in a file beside'
TENON_FOREIGN_ONNX_INSIDE_MAX=100 "$tenon" convert net.script beside.onnx >/dev/null ||
    complain 'tensors in a file beside'
test -s beside.onnx.data || complain 'there is no file beside'
for file in inside beside; do
    check 0 '' convert $file.onnx $file.npz
    "$tenon" inspect $file.npz --values '*' >$file.txt
done
sed 1d inside.txt >a && sed 1d beside.txt >b && cmp a b || complain 'the tensors beside differ'

# ---- PyTorch ----
check 0 '^written     net.pt2$' convert "$net" net.pt2 --input 2,3,8,8 --dynamic '[N, 3, 8, 8]'
check 0 '' convert net.pt2 two.npz
check 0 '"1.num_batches_tracked"' inspect two.npz --json
check 0 '^program     ' convert net.pt2 copy.pt2
check 0 '' bench copy.pt2 --input 5,3,8,8 --seconds 0.01
check 0 '' convert net.pt2 again.onnx --input 1,3,8,8
check 0 '' bench again.onnx --input 1,3,8,8 --seconds 0.01

# ---- refusals ----
echo old >old.onnx
check 1 'input: missing' convert "$net" old.onnx
check 1 'files of tensors' convert net.script old.onnx --prefix a.
check 1 'uniform  .draws random numbers.' convert 'FractionalMaxPool2d(2, output_size=2)' old.onnx \
    --input 1,2,8,8
grep -q old old.onnx || complain 'a failure changed the old file'
status=0
TENON_FOREIGN_ONNX_OPSET=16 "$tenon" convert net.script old.onnx >said 2>&1 && status=1
grep -q 'expected 17 to 23' said || complain 'a version that is too old is accepted'

# ---- judges ----
cp -r "$source/bindings/python/tenon" . && chmod -R u+w tenon
judge() {
    TENON_LIBRARY=$build/.libs/libtenon.so PYTHONPATH=$PWD PYTHONDONTWRITEBYTECODE=1 \
        "${PYTHON-python3}" "$source/tests/foreign/export_cases.py" "$@"
    code=$?
    test $code -eq 0 || test $code -eq 77 || complain "the judge of $*"
}
if test -f "$build/sdk/api.json" && test "${TN_SANITIZERS-no}" = no &&
    "${PYTHON-python3}" "$source/bindings/python/generate.py" "$build/sdk" tenon/_api.py; then
    judge
    judge --pt2
else
    echo 'SKIP of the judges: no Python, or the library has sanitizers'
fi
exit $bad
