#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The command `tenon`: its output and its exit codes.
set -u
tenon=$abs_builddir/tools/tenon
built=$abs_builddir/tests/plugin/built
umask 022
work=$(mktemp -d "$abs_builddir/tests/plugin/place.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
mkdir plugins
for name in good taken_name text failing_activation options needs_absent; do
    cp "$built/$name.so" plugins/
done
ln -s good.so plugins/twin.so
TENON_PLUGIN_PATH=$work/plugins
export TENON_PLUGIN_PATH
bad=0

# check CODE "ARGUMENTS" PATTERN...: runs tenon, looks at the exit code, and for each pattern (grep
# -E) in its output
check() {
    wanted=$1 arguments=$2
    shift 2
    # shellcheck disable=SC2086
    "$tenon" $arguments >out 2>err </dev/null
    code=$?
    if test $code -ne "$wanted"; then
        echo "tenon $arguments: exit code $code, wanted $wanted"
        cat out err
        bad=1
    fi
    for pattern in "$@"; do
        grep -Eq -e "$pattern" out err || {
            echo "tenon $arguments: nothing fits \"$pattern\" in"; cat out err; bad=1; }
    done
    if test "${arguments%--json}" = "$arguments" &&
        awk 'length($0) > 100 && !/[\/]/ { exit 1 }' out; then :
    elif test "${arguments%--json}" = "$arguments"; then
        echo "tenon $arguments: a line is longer than 100 columns"; cat out; bad=1
    fi
}

# The output of the last check is JSON.
is_json() {
    $PERL -MJSON::PP -e 'local $/; JSON::PP->new->utf8->decode(<STDIN>)' <out ||
        { echo "tenon $arguments: this is not JSON"; cat out; bad=1; }
}

# usage
check 2 "" '^usage: tenon COMMAND'
check 2 "dance" 'unknown command "dance"'
check 2 "tain" '^tenon: unknown command "tain"; did you mean "train"\?$'
check 2 "help predcit" 'did you mean "predict"\?$'
check 2 "plugins extra" 'too many arguments: extra'
check 2 "why" 'too few arguments; expected NAME'
check 2 "env --fast" 'unknown option --fast'
check 0 "help" 'plugins ' 'why NAME' 'Exit status'
check 0 "--help" 'plugins '
check 2 "help dance" 'unknown command'
for command in plugins why devices ops env info inspect convert eval predict bench \
    train finetune sweep run report prune new help version; do
    check 0 "$command --help" "^usage: tenon $command" 'Exit status: 0 success'
    check 0 "help $command" "^usage: tenon $command"
done
check 0 "version" '^tenon [0-9]+\.[0-9]+\.[0-9]+, plugin ABI [0-9]+\.[0-9]+$'
check 0 "--version" '^tenon '
check 0 "version --json" '"abi_major": 0'
is_json
check 0 "help --json" '"name": "plugins"' '"name": "why"'
is_json
check 0 "help why --json" '"name": "why"'
is_json

# plugins
check 0 "plugins" '^NAME +VERSION +FILE +OUTCOME +STAGE$' \
    '^org.tenon.test.good +1\.2\.0 +good\.so +OK +version$' \
    '^- +- +text\.so +FAILED +dlopen$' \
    '^- +- +twin\.so +REFUSED +found$' 'same file as' \
    '^org.tenon.test.needs_absent +0\.1\.0 +needs_absent\.so +REFUSED +version$' \
    'requires the plugin "org.nowhere.absent"' \
    'GoodLayer'
check 0 "plugins --json" '"outcome": "REFUSED"' '"id": "org.tenon.test.good"' '"refused": 1'
is_json
# A per cent sign has no special meaning in names.
mkdir odd
cp "$built/text.so" 'odd/100%s%n.so'
TENON_PLUGIN_PATH=$work/odd
check 0 "plugins" '100%s%n\.so +FAILED +dlopen$'
check 0 "plugins --json" '/odd/100%s%n\.so"'
is_json
check 1 "why 100%s%n" '100%s%n\.so' 'dlopen'
check 1 "info %n%s" '%n%s'
check 2 "%n%s" '%n%s'
check 2 "ops --%s%n" '--%s%n'
TENON_PLUGIN_PATH=$work/plugins

# A static build always has its own plugins, even if the folder of plugins is empty.
mkdir -p nothing
static=$(TENON_PLUGIN_PATH=$work/nothing "$tenon" plugins | grep -c '(static)')
test "$static" -gt 0 ||
    (TENON_PLUGIN_PATH=$work/nothing; export TENON_PLUGIN_PATH; check 0 "plugins" \
    'no plugins found'; exit $bad) || bad=1

# why: activation included; by id, part of it, stem, file, path
for name in org.tenon.test.good good good.so "$work/plugins/good.so" plugins/good.so \
    plugins/twin.so; do
    check 0 "why $name" '^outcome +OK$' '^stage +activate$' '^layers +GoodLayer$'
done
check 1 "why text" '^outcome +FAILED$' '^stage +dlopen$' '^reason +.*text\.so'
check 1 "why failing_activation" '^outcome +FAILED$' '^stage +activate$' \
    'licence file of the accelerator'
check 1 "why nobody" 'no plugin and no file has the name "nobody"'
check 1 "why failing_activation --json" '"stage": "activate"'
is_json
check 1 "why $built/unresolved.so" 'function_that_nobody_has'

# why: another process finds the plugin that crashes, also when other plugins are in the folder
check 1 "why $built/crash.so" '^outcome +FAILED$' '^stage +dlopen$' \
    'it crashed with SIG(ABRT|SEGV)' 'crash\.so'
check 1 "why $built/crash_activation.so" '^stage +activate$' 'it crashed with SIG' \
    'in its activate function'
cp "$built/crash.so" plugins/
check 1 "why crash" '^outcome +FAILED$' 'it crashed with SIGABRT'
check 1 "why crash.so --json" '"signal": "SIGABRT"'
is_json
check 0 "why good" '^outcome +OK$' \
    'another plugin is excluded, .*crash\.so: it crashed with SIGABRT'
check 0 "plugins" '^- +- +crash\.so +FAILED +dlopen$' 'it crashed with SIGABRT' \
    '^org.tenon.test.good +1\.2\.0 +good\.so +OK +version$'
rm plugins/crash.so

# A plugin that never returns ends its inspection, not the command: at each step, and with other
# plugins.
check 2 "why good --seconds" 'expected a number from 1 to 86400'
check 2 "why good --seconds=0" 'expected a number from 1 to 86400'
check 2 "plugins --seconds x" 'expected a number from 1 to 86400'
for case in mapped:dlopen:mapping asked:query:'its query' \
    activated:activate:'its activate function' \
    probed:probe:'its enumerate function'; do
    name=hangs_${case%%:*} stage=${case#*:}
    check 1 "why $built/$name.so --seconds 1" '^outcome +FAILED$' "^stage +${stage%%:*}$" \
        "^reason +${stage#*:}" 'within 1 s \(--seconds\)' "$name\.so"
done
check 1 "why $built/hangs_activated.so --seconds=1 --json" '"signal": "timeout"' \
    '"outcome": "FAILED"' '"stage": "activate"'
is_json
check 1 "why $built/hangs_deactivated.so --seconds 1" '^outcome +OK$' \
    'hangs_deactivated\.so: its deactivate function did not return'
cp "$built/hangs_asked.so" "$built/hangs_mapped.so" plugins/
check 0 "plugins --seconds 1" '^- +- +hangs_asked\.so +FAILED +query$' \
    'its query did not return within 1 s' \
    '^- +- +hangs_mapped\.so +FAILED +dlopen$' \
    '^org.tenon.test.good +1\.2\.0 +good\.so +OK +version$'
check 0 "why good --seconds 1" '^outcome +OK$' \
    'another plugin is excluded, .*hangs_asked\.so: its query did not return'
rm plugins/hangs_asked.so plugins/hangs_mapped.so

# A device that cannot be opened is not OK.
check 1 "why $built/fails_to_open.so" '^outcome +FAILED$' '^stage +probe$' \
    'board 1 answers with 100% noise'

# info
check 0 "info GoodLayer" '^layer GoodLayer, from org\.tenon\.test\.good$'
check 0 "info org.tenon.test.good" '^plugin org\.tenon\.test\.good 1\.2\.0$' '^layers +GoodLayer$'
check 0 "info good --json" '"kind": "plugin"'
is_json
check 0 "info options" '^VARIABLE +VALUE +ORIGIN +HELP$' \
    '^TENON_OPTIONS_DEPTH +- +default +how deep \(default: 3\)$'
check 1 "info GoodLair" 'unknown name "GoodLair"' 'did you mean "GoodLayer"' \
    'plugin .*/needs_absent\.so, which may provide this name, did not load .*: REFUSED at version'
check 0 "info" '^layers +FailsLater, GoodLayer, ' '^optimizers +none$' '^formats +none$' \
    '^operators +0; `tenon ops` lists them$' '^passes +none$' '^communicators +none$' \
    '^datasets +none$' '^transforms +none$' '^pruning methods +none$'
check 0 "info --json" '"layers": \[' '"GoodLayer"' '"schedulers": \[' '"pruning methods": \['
is_json

# inspect, convert: files of tensors, where the plugin is there
check 2 "inspect" 'too few arguments; expected FILE'
check 2 "convert a" 'too few arguments; expected FROM TO'
check 2 "convert a b --rename" 'a value is missing after --rename'
check 2 "convert a b --rename x" '--rename: wrong value, got "x"; expected OLD=NEW'
check 2 "convert a b --prefix=" '--prefix: wrong value, got ""'
check 2 "convert a b --dtype int32" '--dtype: wrong value, got "int32"'
check 2 "convert a b --dtypes float16" 'unknown option --dtypes'
check 2 "inspect a --stats=1" 'unknown option --stats=1'
files=$(cd "${abs_srcdir:-$srcdir}" && pwd)/tests/io/files
TENON_PLUGIN_PATH=$abs_builddir/plugins/.libs
if test -f "$TENON_PLUGIN_PATH/formats.so" || "$tenon" info npy >/dev/null 2>&1; then
    check 1 "inspect nothing.npy" 'nothing\.npy: cannot open'
    cp "$files/python.safetensors" weights.safetensors
    cp "$files/columns.npy" columns.npy
    check 0 "inspect weights.safetensors" '^weights\.safetensors +15 tensors, 34 elements, 120 B$' \
        '^NAME +DTYPE +SHAPE +SIZE$' '^0\.weight +float32 +\[2, 3\] +24 B$' \
        '^scalar +float32 +\[\] +4 B$' \
        '^empty +float32 +\[0, 4\] +0 B$' '^METADATA +TEXT$' '^format +pt$'
    check 0 "inspect weights.safetensors --json" '"name": "0.weight"' '"dtype": "bfloat16"' \
        '"note": "a b.u000a%d"'
    is_json
    check 0 "inspect columns.npy --json" '"name": "arr_0"' '"bytes": 24'
    is_json
    check 1 "inspect out" 'no format recognizes its content'
    check 0 "convert columns.npy made.safetensors" '^1 tensor, 12 elements, 24 B$'
    check 0 "inspect made.safetensors" '^arr_0 +int16 +\[2, 3, 2\] +24 B$'
    check 0 "convert made.safetensors made.npy --json" '"to": "made.npy"' '"elements": 12'
    is_json
    cmp made.npy "$files/tenon-columns.npy" || { echo "made.npy differs"; bad=1; }
    check 1 "convert weights.safetensors made.npy" 'npy: wrong number of tensors, got 15'
    check 1 "convert weights.safetensors made.txt" \
        'made\.txt: no format has this extension; formats: [a-z0-9.(), ]*npy \(\.npy\)[^:;]*$'
    if grep -E 'pytorch|index' err; then
        echo "formats are offered that cannot be written"; bad=1; fi
    cmp made.npy "$files/tenon-columns.npy" || { echo "made.npy was harmed"; bad=1; }
    check 0 "inspect columns.npy --stats" \
        '^NAME +DTYPE +SHAPE +MIN +MAX +MEAN +NAN +HISTOGRAM$' \
        '^arr_0 +int16 +\[2, 3, 2\] +0 +11 +5\.5 +0 +█'
    check 0 "inspect columns.npy --stats --values=arr* --json" '"min": 0.0,' '"max": 11.0,' \
        '"mean": 5.5,' '"nan": 0,' '"infinite": 0,' '"high": 11.0,' '"text": "\[\[\[ 0  1\]'
    is_json
    check 0 "inspect columns.npy --values arr_0" '^arr_0 +int16\[2, 3, 2\]$' '^  \[10 11\]\]\]'
    check 1 "inspect columns.npy --values x" 'columns\.npy: no entry has a name like x'
    check 0 "convert weights.safetensors renamed.safetensors --prefix 0.=body.0. \
        --rename=scalar=number --dtype float64" '^15 tensors'
    check 0 "inspect renamed.safetensors" '^body\.0\.weight +float64 +\[2, 3\] +48 B$' \
        '^number +float64 +\[\] +8 B$' '^format +pt$'
    check 0 "convert renamed.safetensors plain.safetensors --prefix body. --prefix =net." '^15 '
    check 0 "inspect plain.safetensors" '^net\.0\.weight +float64' '^net\.number +float64'
    check 1 "convert weights.safetensors no.safetensors --prefix module." \
        'prefix module\.: no entry has this prefix; nothing was written'
    check 1 "convert weights.safetensors no.safetensors --rename scalar=0.weight" \
        'two entries would have the name "0\.weight"; nothing was written'
    test ! -e no.safetensors || { echo "no.safetensors was written"; bad=1; }
    mkdir folder && cp weights.safetensors folder/model.safetensors
    check 0 "inspect folder" '^folder +15 tensors, 34 elements, 120 B$'
    cp "$files/pytorch.pt" pytorch.pt # a whole path is shortened where it is long
    check 0 "inspect pytorch.pt" '^pytorch\.pt +26 tensors, 88 elements, 360 B$' \
        '^base\.transposed +float32 +\[4, 3\] +48 B$'
    check 0 "convert $files/python.npz made.npz --json" '"tensors": 4'
    is_json
    cmp made.npz "$files/tenon.npz" || { echo "made.npz differs"; bad=1; }
    check 1 "inspect $files/refused-system.pt" 'posix\.system: not data'
    check 1 "inspect nothing.pt --json" '"error": ' '"code": "TN_ERR_IO"' 'nothing\.pt: cannot open'
    is_json
    dd if=weights.safetensors of=cut.safetensors bs=100 count=1 2>/dev/null
    check 1 "inspect cut.safetensors" 'truncated, got 92 bytes after the first 8; expected a header'
fi
# summary: parameters and multiply-adds of a network; 3 * 3 * 3 * 8 weights and 2 * 8 * 8 * 216
# products, and so on
check 2 "summary" 'expected a model'
check 2 "summary Linear(4,2) --inputs 1" 'unknown option --inputs'
check 2 "summary Linear(4,2) --input" 'a value is missing after --input'
check 2 "summary Linear(4,2) --input 4 --dtype f99" '--dtype: unknown, got "f99"'
if test -f "$TENON_PLUGIN_PATH/layers.so" || "$tenon" info Linear >/dev/null 2>&1; then
    check 0 "summary Sequential(Linear(4,2),ReLU())" '^LAYER +PARAMETERS +COUNT$' \
        '^  \(0\): Linear +weight \[2, 4\], bias \[2\] +10$' '^parameters +10, of them 10 trainable'
    check 0 "summary Linear(4,2) --json" '"parameter_shapes": "weight' '"parameters": 10'
    is_json
    check 1 "summary Linear(4,2) --input 4,," '--input: not a shape, got "4,,"'
    check 0 "info" '^layers +AdaptiveAvgPool1d, ' '^operators +[1-9][0-9]*; '
    check 0 "info LSTM" 'output, \(h_n, c_n\) = module\(input, \(h_0, c_0\)\)'
    check 0 "ops add" '^operator add, revision 1, a primitive' '^inputs +a, b$' '^DTYPE +.*cpu' \
        '^float32 +.*kernel'
    check 0 "ops add --json" '"name": "add"' '"routes": \{'
    is_json
    check 1 "ops ad" 'did you mean "add"'
    check 1 "summary Linear(4,2) --input 2,5 --json" '"error": ' 'Linear'
    is_json
    check 1 "summary Linaer(4,2) --input 4" 'did you mean'
    check 1 "summary @none.txt --input 4" 'none\.txt: No such file'
    mkfifo fifo
    check 1 "summary @fifo --input 4" 'fifo: it is not a regular file'
    echo 'Sequential(conv=Conv2d(3, 8, 3, bias=False), bn=BatchNorm2d(8), drop=Dropout(),' \
        'pool=AdaptiveAvgPool2d(1), flat=Flatten(), out=Linear(8, 10))' >net.txt
    check 0 "summary @net.txt --input 2,3,10,10" '^LAYER +OUTPUT +PARAMETERS +MULTIPLY-ADDS$' \
        '^  \(conv\): Conv2d +\[2, 8, 8, 8\] +216 +27,648$' \
        '^  \(bn\): BatchNorm2d +\[2, 8, 8, 8\] +16 +-$' \
        '^  \(drop\): Dropout +\[2, 8, 8, 8\] +- +-$' '^  \(out\): Linear +\[2, 10\] +90 +160$' \
        '^parameters +322, of them 322 trainable; buffers: 17$' \
        '^multiply-adds +27,808 .*55,616 FLOPs$' '^not counted +batch_norm'
    check 0 "summary net.txt --input 2,3,10,10" '^multiply-adds +27,808 '
    check 0 "summary ReLU --input 2" '^ReLU +\[2\] +- +-$'
    check 0 "summary @net.txt --input 2x3x10x10 --json" '"parameters": 322,' \
        '"multiply_adds": 27808,' '"flops": 55616,' '"parameter_bytes": 1288,'
    is_json
    printf '%s\n' 'MyNet(' '  (fc): Linear(in_features=4, out_features=3, bias=True)' \
        '  (act): MyAct(alpha=2.0)' '  (norm): LayerNorm((3,), eps=1e-05)' ')' >mine.txt
    check 1 "summary @mine.txt --input 2,4" '^LAYER +PARAMETERS +COUNT$' '^MyNet +- +-$' \
        '^  \(fc\): Linear +weight \[3, 4\], bias \[3\] +15$' '^  \(act\): MyAct +- +-$' \
        '^parameters +21, of them 21 trainable; buffers: -$' \
        'the network cannot be called, .*Module \[MyNet\] is missing the required "forward"'
    printf '%s\n' 'Sequential(' '  (0): Linear(in_features=4, out_features=3, bias=True)' \
        '  (1): MyAct(alpha=2.0)' ')' >leaf.txt
    check 1 "summary @leaf.txt --input 2,4" '^  \(1\): MyAct +- +-$' '^parameters +15, ' \
        'Module \[MyAct\] is missing .*load a plugin that provides this layer'
    check 1 "summary @leaf.txt --input 2,4 --json" '"parameters": 15,' '"error": \{' 'MyAct' \
        '"parameter_shapes": "weight \[3, 4\], bias \[3\]"'
    check 1 "summary Sequential(Linear(4,3),MyAct(alpha=2.0)) --input 2,4" 'MyAct'
    if "$tenon" info safetensors >/dev/null 2>&1; then
        digits=$files/../../tools/files/digits.safetensors
        # a file with weights and the spec; the network is called without memory all the same
        check 0 "summary $digits --input 5,1,8,8" '^  \(1\): Linear +\[5, 10\] +650 +3,200$'
        check 0 "summary $digits" '^  \(1\): Linear +weight \[10, 64\], bias \[10\] +650$'
        check 1 "summary weights.safetensors" 'no metadata "tenon.spec"'
    fi
    check 0 "summary LazyLinear(3) --input 2,7" '^Linear +\[2, 3\] +24 +42$' \
        '^not counted +nothing$'
    check 0 "summary Embedding(10,4) --input 2,3:int64" '^Embedding +\[2, 3, 4\] +40 +-$'
    check 0 "summary Bilinear(3,4,5) --input 6,3 --input 6,4" '^Bilinear +\[6, 5\] +65 '
fi
TENON_PLUGIN_PATH=$work/plugins
check 1 "why NOPE --json" '"error": ' '"code": "TN_ERR_KEY"' 'no plugin and no file has the name'
is_json

# env: options of plugins, values with quotes, backslashes, control characters and broken UTF-8 in
# JSON
TENON_OPTIONS_LABEL=$(printf 'a "b" \\ \t \303\244 \377 100%% c')
export TENON_OPTIONS_LABEL
check 0 "env" '^TENON_DEVICE +cpu +default ' '^TENON_PLUGIN_PATH .* environment ' \
    '^TENON_OPTIONS_BETA +- +default +slope' \
    '^TENON_OPTIONS_LABEL .* environment '
check 0 "env --json" '"TENON_OPTIONS_LABEL"' 'a \\"b\\" \\\\ \\u0009'
is_json

# devices and operators of this folder: none
if test "$static" -eq 0; then
    check 1 "devices" 'no device found' 'org.tenon.test.needs_absent: REFUSED at version'
    check 1 "devices --json" '"devices": \['
    is_json
    check 1 "devices nix:0" 'nix:0' 'no plugin provides any device'
    check 1 "devices nix --json" '"error"'
    is_json
    check 1 "ops" '0 operators'
    check 1 "ops --json" '"operators": \['
    is_json
fi

# A plugin is inspected in a process of its own, whose log also goes where TENON_LOG says. No signal
# ends a process where the size of files is limited, and no process waits for the writer of a FIFO.
TENON_LOG=debug:log.txt "$tenon" plugins >out 2>err
test "$static" -gt 0 || grep -q '^tenon: debug: mapping .*good.so' log.txt || {
    echo "TENON_LOG=debug:FILE: the file has no line"; cat err; bad=1; }
test -s err && { echo "TENON_LOG=debug:FILE writes to standard error:"; cat err; bad=1; }
for to in log2.txt ''; do
    : >err
    { (ulimit -f 0; TENON_LOG=debug${to:+:$to} "$tenon" plugins 2>err; echo "code $?") | cat; } >out
    tail -n 1 out | grep -q '^code [01]$' || {
        echo "a file size limit ends tenon plugins:"; tail -n 1 out; bad=1; }
    grep -q 'SIGXFSZ' out && { echo "a plugin is blamed for the file size limit"; bad=1; }
done
test -p fifo || mkfifo fifo
for arguments in "summary @fifo --input 2" "check fifo" "check plugins/good.so --cases fifo" \
    "inspect fifo" \
    "convert fifo x.npz"; do
    # shellcheck disable=SC2086
    timeout 60 "$tenon" $arguments >out 2>err </dev/null
    code=$?
    test $code -ne 0 && test $code -ne 124 || {
        echo "tenon $arguments: exit code $code"; cat out err; bad=1; }
done

# output that cannot be written is not silent
if test -w /dev/full; then
    "$tenon" plugins >/dev/full 2>err
    test $? -eq 1 || { echo "a full disk was not noticed"; bad=1; }
    grep -q 'cannot be written' err || { echo "a full disk was not named"; bad=1; }
fi

# a command that cannot start itself: its /proc/self/exe is the dynamic loader, as under an emulator
program=$abs_builddir/tools/.libs/tenon
test -f "$program" || program=$tenon # without libtool's script
loader=$(readelf -l "$program" 2>/dev/null | sed -n 's/.*interpreter: \(.*\)\]/\1/p')
if test "${TN_SANITIZERS-no}" = no && test -n "$loader"; then
    LD_LIBRARY_PATH=$abs_builddir/.libs "$loader" "$program" plugins >out 2>err
    test $? -eq 1 && grep -q 'the command cannot start itself once more' err ||
        { echo "a command that cannot start itself"; cat out err; bad=1; }
fi
exit $bad
