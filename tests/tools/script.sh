#!/bin/sh
# SPDX-License-Identifier: MIT
#
# tenon script: writes a script, which the commands that take a model take, also in a process that
# finds no layers. tests/graph/test_script_files.c has the tests of the files.
. "${abs_srcdir:-$srcdir}/tests/tools/commands.sh"
net='Sequential(Conv2d(3, 8, 3), BatchNorm2d(8), ReLU(), Dropout(0.5), Flatten(), Linear(288, 4))'

check 0 '^written     net.script$' script "$net" --input 2,3,8,8 --out net.script
also '^module      Sequential, 1396 parameters$' '^evaluation  5 operators$' \
    '^training    [0-9]+ operators$'
check 0 '"trains": true' script "$net" --input 2,3,8,8 --out json.script --json
check 0 '^graph\(%self : RecursiveScriptModule' graph net.script --input 2,3,8,8
also 'conv2d\['
check 0 'SAMPLES/S' bench net.script --input 2,3,8,8 --seconds 0.01
check 0 '0.weight' inspect net.script
# the parts of a script are those of the module: the same rows, counts and results
"$tenon" summary "$net" --input 2,3,8,8 | sed '/Dropout/d; /^memory/d' >rows
check 0 '^  \(0\): Conv2d +\[2, 8, 6, 6\] +224 +' summary net.script --input 2,3,8,8
sed '/^memory/d' out | diff rows - >err || complain 'another summary of a script'
check 0 '"type": "BatchNorm2d"' summary net.script --input 2,3,8,8 --json
check 1 'the network cannot be called' summary net.script --input 2,4,8,8

# a program of PyTorch is a MODEL, too
program=$abs_srcdir/tests/foreign/files/module_old.pt2
check 0 'fc.weight +float64' inspect "$program"
check 0 '^  \(fc\): Linear +\[4, 2\] +8 ' summary "$program" --input 4,3:float64
check 0 'layer_norm' graph "$program" --input 4,3:float64
check 0 'SAMPLES/S' bench "$program" --input 4,3:float64 --seconds 0.01
check 0 '^module      Old, 12 parameters$' script "$program" --input 4,3:float64 --out old.script
check 1 'functions without a rule, with the number of their calls: mylib.unknown.default' \
    summary "$abs_srcdir/tests/foreign/files/refused_functions.pt2" --input 4,3:float64

# a fresh process without the plugins of the layers
echo hello >notes.txt
check 0 written script Linear\(3,2\) --input 1,3 --dynamic '[N, 3]' --out small.script \
    --file notes.txt --file data=notes.txt
# the names of the classes are a file of the script that tenon predict reads
echo '["k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7", "k8", "k9"]' >ten.json
check 0 written script "$files/digits.safetensors" --input 1,1,8,8 --dynamic '[N, 1, 8, 8]' \
    --out classes.script --file tenon.classes=ten.json
check 0 '"name": "k4"' predict classes.script "$files/digits.npy" --json --top 3
TENON_PLUGINS='backend-cpu,backend-meta,ops,formats'
export TENON_PLUGINS
check 1 'no plugin provides' graph 'Linear(3, 2)' --input 1,3
check 0 'linear' graph small.script --input 7,3
check 0 'linear' graph small.script --input 7,3 --train
check 0 'layer_norm' graph old.script --input 4,3:float64
check 0 'linear' graph small.script --input 7,3 --format plan
check 0 '_files/data' inspect small.script
check 0 written script small.script --input 7,3 --out again.script
cmp small.script again.script || complain 'a script of a script'
TENON_PLUGINS='backend-cpu,formats'
check 1 'operator "linear": no plugin provides it; expected plugin "tenon.ops"' \
    graph small.script --input 7,3
unset TENON_PLUGINS

check 0 '^evaluation  ' script "$net" --input 2,3,8,8 --out eval.script --eval
grep -q '^training' out && complain 'a script for evaluation trains'
check 0 '^evaluation  4 operators$' script "$net" --input 2,3,8,8 --out fast.script \
    --passes 'conv_bn, dropout, dead'
check 1 'traced in evaluation mode' graph fast.script --input 2,3,8,8 --train
check 2 'expected NAME.script' script "$net" --input 2,3,8,8 --out net.safetensors
check 2 '--out is missing' script "$net" --input 2,3,8,8
check 2 '--input is missing' script "$net" --out x.script
check 1 'absent: cannot be read: No such file' \
    script "$net" --input 2,3,8,8 --out x.script --file absent
mkfifo pipe
check 1 'pipe: cannot be read: it is not a regular file' \
    script "$net" --input 2,3,8,8 --out x.script --file pipe
test -e x.script && complain 'a file of a script that failed'
dd if=net.script of=cut.script bs=900 count=1 2>/dev/null
check 1 'cut.script' graph cut.script --input 2,3,8,8
check 1 'absent.script' graph ./absent.script --input 2,3,8,8
test $bad = 0 && printf '\nPROVES SCR-013\n'
exit $bad
