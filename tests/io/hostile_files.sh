#!/bin/sh
# SPDX-License-Identifier: MIT
#
# tenon inspect and tenon convert on damaged files and on indexes of shards that lie: they end with
# status 0 or 1, say which file is wrong, and leave the file that they would have replaced alone.
tenon=${TENON-$abs_builddir/tools/tenon}
files=$abs_srcdir/tests/io/files
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
# The driver of OpenCL takes longer to start than the command runs here.
TENON_PLUGINS='!backend-opencl'
export TENON_PLUGINS
status=0 refused=0 read=0
fail() {
    echo "FAILED: $1"
    sed 's/^/    /' said | head -n 5
    status=1
}

# one FILE: inspects and converts it.
one() {
    "$tenon" inspect "$1" --stats >said 2>&1
    first=$?
    echo old >out.npz
    "$tenon" convert "$1" out.npz >/dev/null 2>said
    second=$?
    case $first$second in
    00) read=$((read + 1))
        "$tenon" inspect out.npz >said 2>&1 || fail "$1: what convert wrote cannot be read" ;;
    01 | 11)
        refused=$((refused + 1))
        # or, if only the format of the new file cannot hold what was read, that file
        grep -qF -e "$1" -e out.npz said || fail "$1: the message does not name the file"
        test "$(cat out.npz)" = old || fail "$1: a refused file replaced another one"
        ls out.npz?* >/dev/null 2>&1 && fail "$1: a file is left behind" ;;
    *)  fail "$1: inspect ended with $first, convert with $second" ;;
    esac
}

# ---- files that are cut, or whose bytes are changed ----
for file in python.safetensors python.npz python-deflated.npz matrix.npy pytorch.pt \
    pytorch-old.pt; do
    perl -e '
        my ($from, $name) = @ARGV;
        open my $in, "<:raw", $from or die "$from: $!\n";
        my $good = do { local $/; <$in> };
        my $seed = 7;
        sub some {
            $seed = ($seed * 1103515245 + 12345) & 0x7fffffff;
            return int($seed / 65536) % $_[0];
        }
        for my $i (0 .. 23) {
            my $bad = $good;
            my $most = $i % 2 ? 256 : length $bad; # headers get half of the changes
            $most = length $bad if $most > length $bad;
            if ($i % 4 == 0) {
                $bad = substr $bad, 0, some(length $bad);
            } elsif ($i % 4 == 3) {
                substr($bad, some($most), 1) = chr 255 for 1 .. 4;
            } else {
                my $at = some($most);
                substr($bad, $at, 1) = chr(ord(substr $bad, $at, 1) ^ (1 << some(8)));
            }
            open my $out, ">:raw", "$i-$name" or die;
            print $out $bad;
            close $out or die;
        }' "$files/$file" "$file" || exit 1
    for i in 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23; do
        one "$i-$file"
    done
done
test $refused -gt 40 || fail "only $refused of the damaged files were refused"
test $read -gt 0 || fail "none of the files was read"

# ---- shards ----
mkdir shards || exit 1
"$tenon" convert "$files/python.safetensors" shards/one.safetensors --prefix =one. >said 2>&1 &&
    "$tenon" convert "$files/python.safetensors" shards/two.safetensors --prefix =two. >said 2>&1 ||
    { fail "the shards cannot be written"; exit 1; }
name=$("$tenon" inspect "$files/python.safetensors" --json | tr ',{' '\n\n' |
    sed -n 's/.*"name": *"\([^"]*\)".*/\1/p' | head -n 1)
test -n "$name" || { fail "no name of a tensor"; exit 1; }
: >outside.safetensors
ln -s index.loop shards/index.loop

# index WANTED-WORDS JSON: an index that is refused, with words in the message
index() {
    words=$1
    printf '%s' "$2" >shards/model.safetensors.index.json
    for command in inspect convert; do
        if test $command = inspect; then
            "$tenon" inspect shards >said 2>&1
        else
            "$tenon" convert shards out.npz >said 2>&1
        fi
        test $? -eq 1 || fail "$command: an index with $2 is not refused"
        grep -q "$words" said || fail "$command: $2: the message does not say \"$words\""
    done
    test "$(cat out.npz)" = old || fail "a refused index replaced a file"
}
echo old >out.npz
index 'missing.safetensors' '{"weight_map": {"one.'"$name"'": "missing.safetensors"}}'
index 'outside' '{"weight_map": {"one.'"$name"'": "../outside.safetensors"}}'
index 'etc' '{"weight_map": {"one.'"$name"'": "/etc/passwd"}}'
index 'index.loop' '{"weight_map": {"one.'"$name"'": "index.loop"}}'
index 'one.safetensors' '{"weight_map": {"one.nothing": "one.safetensors"}}'
index 'index.json' '{"weight_map": {"one.'"$name"'": 3}}'
index 'index.json' '{"weight_map": ["one.safetensors"]}'
index 'index.json' '{"weight_map": {}'
index 'index.json' ''
index 'index.json' '{"metadata": {}}'
index 'two.safetensors' '{"weight_map": {"one.'"$name"'": "two.safetensors"}}'
echo "$read files were read, $refused refused"
exit $status
