#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Every file that the command opens, as what is no file: a pipe, a folder, a socket, a device or a
# file of /proc without an end, and a small file that unpacks to much. Each call ends with an error
# that names the file, and needs little memory.
set -u
tenon=${TENON-$abs_builddir/tools/tenon}
plugins=$abs_builddir/plugins/.libs
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
unset TENON_DEVICE TENON_PROFILE
# The driver of OpenCL takes longer to start than the command runs here.
TENON_PLUGINS='!backend-opencl'
export TENON_PLUGINS
TENON_LOG=error
export TENON_LOG
"$tenon" info safetensors >/dev/null 2>&1 || {
    echo "SKIP: this build lacks safetensors"; exit 77; }
bad=0 calls=0

# The limit of memory in KiB. Sanitizers reserve terabytes, and cannot have one.
most=3000000
(ulimit -v $most && "$tenon" env) >/dev/null 2>&1 || most=unlimited

# ends WORDS COMMAND...: the command fails, and says WORDS. The time is no measurement: what waits
# for a pipe waits for ever, and what reads a device never ends.
ends() {
    words=$1
    shift
    (ulimit -v $most && exec timeout -k 1 200 "$tenon" "$@") >said 2>&1 </dev/null
    code=$?
    calls=$((calls + 1))
    if test $code -ne 1 && test $code -ne 2 || ! grep -qF -e "$words" said; then
        echo "FAILED: tenon $*: status $code; expected 1 or 2, and \"$words\" in"
        head -c 600 said | sed 's/^/    /'
        bad=1
    fi
}

# ---- what is no file ----
mkfifo a.pipe && mkdir a.folder a.vocabulary && ln -s a.link a.link &&
    perl -MSocket -e 'socket(my $s, PF_UNIX, SOCK_STREAM, 0) or die;
        bind($s, sockaddr_un("a.socket")) or die' || exit 1
odd='a.pipe a.folder a.socket /dev/zero'
# By its type a regular file, of size 0; its end is 2^38 bytes away.
head -c 8 /proc/self/pagemap >said 2>/dev/null && test -s said && odd="$odd /proc/self/pagemap"

net='Linear(2, 2)'
for file in $odd a.link; do
    for name in inspect summary check; do
        ends "$file" $name "$file"
    done
    ends "$file" convert "$file" out.npz
    ends "$file" script "$file" --input 1,2 --out out.script
    ends "$file" prune "$file" --amount 0.5 --out out.safetensors
    ends "$file" predict "$file" in.csv
    ends "$file" predict 'Flatten()' "$file"
    ends "$file" predict 'Flatten()' --data Digits --labels "$file"
    ends "$file" train --config "$file"
    ends "$file" train --model "$file" --data Digits --out run
    ends "$file" train --model "$net" --init "$file" --data Digits --out run
    ends "$file" eval "$net" --weights "$file" --data Digits
    ends "$file" script "$net" --weights "$file" --input 1,2 --out out.script
    ends "$file" script "$net" --input 1,2 --out out.script --file "a=$file"
    # datasets
    for data in "CSV('$file')" "CSVRows('$file')" "IDX('$file')" "TensorFile('$file')" \
        "ImageFiles('$file')" "ImageFolder('$file')" "WAVFiles('$file', length=5)" \
        "WAVFolder('$file', length=5)" "TextBytes('$file', length=5)" \
        "MNIST('$file')" "CIFAR10('$file')" "TextBPE('$file', vocabulary='$file', length=5)"; do
        ends "$file" predict 'Flatten()' --data "$data"
    done
    case $file in /*) target=$file ;; *) target=$work/$file ;; esac
    rm -rf data && mkdir data && echo '#version' >data/merges.txt
    for name in vocab.json train-images-idx3-ubyte data_batch_1.bin; do
        ln -s "$target" data/$name
    done
    ends data/vocab.json predict 'Flatten()' \
        --data "TextBPE('a.csv', vocabulary='data', length=5)"
    ends data/train-images-idx3-ubyte predict 'Flatten()' --data "MNIST('data')"
    ends data/data_batch_1.bin predict 'Flatten()' --data "CIFAR10('data')"
done

# Cases of tenon check: an empty folder is a folder without cases.
for file in $(echo "$odd" | sed 's/a.folder//'); do
    for only in optim.so:optimizers/SGD ops.so:ops/relu layers.so:layers/Linear \
        data.so:transforms/ToFloat; do
        ends "$file" check "$plugins/${only%%:*}" --only "${only#*:}" --cases "$file"
    done
done

# ---- a pipe that nobody reads, as a file that is written ----
wanted='it is a pipe that nobody reads; start its reader first'
printf '1,2\n' >in.csv
"$tenon" predict 'Flatten()' in.csv --output in.npy >said 2>&1 || { cat said; exit 1; }
ends "$wanted" predict 'Flatten()' in.csv --output a.pipe --format csv
ends "$wanted" check "$plugins/optim.so" --only optimizers/SGD --json a.pipe
ends 'a.pipe' convert in.npy a.pipe
mkfifo a.txt
TENON_LOG=warning TENON_PROFILE=a.txt timeout -k 1 200 "$tenon" predict 'ReLU()' in.csv \
    >said 2>&1 </dev/null
code=$?
if test $code -gt 2 || { "$tenon" info tenon.profile >/dev/null 2>&1 && ! grep -q 'a.txt' said; }
then
    echo "FAILED: TENON_PROFILE=a.txt: status $code"; cat said; bad=1
fi
# With a reader it is written.
cat a.pipe >got &
"$tenon" predict 'Flatten()' in.csv --output a.pipe --format csv 2>said ||
    { sleep 1; "$tenon" predict 'Flatten()' in.csv --output a.pipe --format csv; } ||
    { echo "FAILED: a pipe with a reader"; cat said; bad=1; }
wait
grep -q 'in.csv' got || { echo "FAILED: a pipe with a reader got:"; cat got; bad=1; }

# ---- small files that unpack to much ----
if gzip -c in.csv >in.csv.gz 2>/dev/null &&
    "$tenon" predict 'Flatten()' --data "CSV('in.csv.gz', label=None)" >said 2>&1; then
    # Members of gzip can follow each other: 1,200 MB in 1.2 MB.
    head -c 100000000 /dev/zero | tr '\0' '1' | gzip -9 >part.gz
    for i in 1 2 3 4 5 6 7 8 9 10 11 12; do cat part.gz; done >much.gz
    refused='much.gz: unpacked data: too large for a file of'
    ends "$refused" predict 'Flatten()' --data "TextBytes('much.gz', length=5)"
    grep -q 'if you trust it, raise TENON_DATA_UNPACKED_MAX' said || {
        echo "FAILED: the message does not say what to do"; cat said; bad=1; }
    # [2, 1000, 1000] bytes of an IDX file
    { printf '\000\000\010\003\000\000\000\002\000\000\003\350\000\000\003\350'
        head -c 2000000 /dev/zero; } | gzip >images.gz
    TENON_DATA_UNPACKED_MAX=1000000
    export TENON_DATA_UNPACKED_MAX
    for data in "CSV('much.gz')" "CSVRows('much.gz')" "IDX('images.gz')"; do
        ends '.gz: unpacked data: too large for a file of' predict 'Flatten()' --data "$data"
    done
    unset TENON_DATA_UNPACKED_MAX
    # The limit can be lowered and raised.
    awk 'BEGIN { for (i = 0; i < 2000; i++) print "1,2" }' | gzip >rows.gz
    rows="CSV('rows.gz', label=None)"
    for limit in 7000 8000 -1; do
        TENON_DATA_UNPACKED_MAX=$limit "$tenon" predict 'Flatten()' --data "$rows" --format csv \
            >said 2>&1
        code=$?
        case $limit$code in
        80000) test "$(grep -c . said)" -ge 2000 || { echo "FAILED: rows are missing"; bad=1; } ;;
        70001) grep -q 'expected at most 7000 bytes more than the file' said || {
                echo "FAILED: limit $limit"; cat said; bad=1; } ;;
        -1*) grep -q 'TENON_DATA_UNPACKED_MAX: negative, got -1' said || {
                echo "FAILED: limit $limit"; cat said; bad=1; } ;;
        *) echo "FAILED: limit $limit: status $code"; cat said; bad=1 ;;
        esac
    done
fi
echo "$calls calls"
exit $bad
