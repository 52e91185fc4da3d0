#!/bin/sh
# SPDX-License-Identifier: MIT
#
# tenon predict: probabilities and results are those of PyTorch (make_models.py); pictures keep
# their pixels; inputs of each kind, standard input, output of each kind; errors.
. "${abs_srcdir:-$srcdir}/tests/tools/commands.sh"
model=$files/digits.safetensors

# PyTorch's numbers
check 0 '' predict "$model" "$files/digits.npy" --json
same top results
check 0 '' predict "$model" "$files/digits.npy" --json --batch-size 2
same top results
check 0 '' predict 'Sequential(Flatten(), Linear(64, 10))' --weights "$files/digits.pt" \
    "$files/digits.npy" --format json
same raw results
check 0 '' predict 'Sequential(Flatten(), Linear(64, 10), Softmax(1))' --weights \
    "$files/digits.pt" "$files/digits.npy" --top 3 --json --labels "$here/labels.txt"
same top results
check 0 '^INPUT +CLASS +PROBABILITY$' predict "$model" "$files/digits.npy" --top 1
check 0 '^input,rank,index,class,probability$' predict "$model" "$files/digits.npy" --format csv
cp "$files/digits.npy" .
check 0 '^digits\.npy\[2\] ' predict "$model" digits.npy --top 1
"$tenon" predict "$model" - --json <digits.npy >out 2>err || complain 'standard input'
same top results
also '"input": "-\[0\]"'

# tensors: one for each input of the model, several files, one sample in a file
check 0 '' predict 'Identity()' digits.npy --output copy.npy
cmp copy.npy digits.npy || complain 'copy.npy differs'
check 0 '^copy\.npy\[2\] ' predict 'Flatten()' digits.npy copy.npy
check 0 '^digits\.npy\[0\] ' predict 'Flatten()' digits.npy --single
check 0 '' predict "$model" digits.npy --format safetensors --output out.safetensors
"$tenon" inspect out.safetensors >out
also '^output +float32 +\[3, 10\]'

# tables
printf '1,2\n0.5,-1\n' >rows.csv
check 0 '^rows\.csv\[1\] +1\.5$' predict "$files/line.safetensors" rows.csv
also '^rows\.csv\[0\] +1$'
check 0 '^sample\[0\] +1$' predict "$files/line.safetensors" --data 'CSV("rows.csv", label=None)'
check 0 '' predict "$files/line.safetensors" rows.csv --output made.csv
test "$(cat made.csv)" = 'input,0
rows.csv[0],1.0
rows.csv[1],1.5' || complain 'made.csv'
check 0 '^rows\.csv\[1\] +1\.5$' predict "$files/line.safetensors" --data ' CSVRows ("rows.csv")'

# pictures: the pixels survive, as a picture and as an array; a folder; damaged ones
if "$tenon" info ImageFiles >/dev/null 2>&1 &&
    cp -R "$here/../data/files/pictures" . && chmod -R u+w pictures &&
    "$tenon" predict 'Identity()' pictures/dog/rgb.png --output first.npy >/dev/null 2>err; then
    check 0 '' predict 'Identity()' pictures/dog/rgb.png --output second.png
    check 0 '' predict 'Identity()' second.png --output second.npy
    cmp first.npy second.npy || complain 'the pixels differ'
    check 0 '' predict 'Identity()' pictures/dog/rgb.png --transform 'ToFloat()' \
        --output third.png
    cmp second.png third.png || complain 'pixels of floats differ'
    check 0 '' predict 'Identity()' pictures/cat pictures/dog/rgb.png --format png --output made
    test "$(ls made | tr '\n' ' ')" = 'alpha.png grey.png palette.png rgb.png ' ||
        complain 'names of pictures'
    cmp made/rgb.png second.png || complain 'made/rgb.png'
    check 0 '' predict 'Identity()' made/rgb.png second.png made/rgb.png --format png --output two
    test "$(ls two | tr '\n' ' ')" = 'rgb-2.png rgb.png second.png ' || complain 'equal names'
    check 1 'would overwrite the input' predict 'Identity()' made/rgb.png --format png --output made
    check 1 'one file for several results' predict 'Identity()' made --output one.png
    check 0 '^pictures/cat/more/palette\.png +class.1 ' predict \
        'Sequential(AdaptiveAvgPool2d(1), Flatten())' pictures --transform 'ToFloat()' --top 1 \
        --labels "$here/classes.json"
    check 1 'input uint8 \[1, 3, 7, 9\]: in Sequential, module "0"' predict \
        'Sequential(AdaptiveAvgPool2d(1), Flatten())' pictures/dog/rgb.png
    head -c 60 pictures/dog/rgb.png >pictures/cat/bad.png
    check 1 'pictures/cat/bad\.png: damaged' predict 'Flatten()' pictures --format csv
    check 1 '"code": "TN_ERR_FORMAT"' predict 'Flatten()' pictures --json
    "$PERL" -MJSON::PP -e 'local $/; my $j = decode_json(<STDIN>);
        exit !(@{$j->{results}} == 1 && $j->{error}{message} =~ /bad\.png/)' <out ||
        complain 'JSON after a failure'
    check 0 '1 damaged sample was left out' predict 'Flatten()' pictures --skip-damaged
    check 0 '"skipped": 1' predict 'Flatten()' pictures --skip-damaged --json
    check 1 'no samples that can be read' predict 'Flatten()' pictures/cat/bad.png --skip-damaged
    # also inputs that no dataset reads, or that are not there
    echo '%PDF-1.4' >no.png
    check 1 'no\.png: cannot be read as an input' predict 'Flatten()' no.png pictures/dog/rgb.png
    check 0 '3 damaged samples were left out' predict 'Flatten()' no.png pictures/dog/rgb.png \
        none.png pictures/cat/bad.png --skip-damaged
    check 0 'input left out: none\.png: cannot be opened' predict 'Flatten()' none.png \
        pictures/dog/rgb.png --skip-damaged
    check 1 'no samples that can be read' predict 'Flatten()' none.png no.png --skip-damaged
    mkdir empty
    check 1 'empty: no pictures' predict 'Flatten()' empty
fi

# sounds: a file, a folder, with options, standard input
if "$tenon" info WAVFiles >/dev/null 2>&1; then
    mkdir sounds
    # 8 bits: 0, 0.5 and -1
    {
        printf 'RIFF\47\0\0\0WAVEfmt \20\0\0\0\1\0\1\0\100\37\0\0\100\37\0\0\1\0\10\0'
        printf 'data\3\0\0\0\200\300\0'
    } >sounds/a.wav
    cp sounds/a.wav b
    check 0 '^sounds/a\.wav +0 +0\.5 +-1$' predict 'Flatten()' sounds b
    also '^b +0 +0\.5 +-1$'
    check 0 '^b +0 +0\.5$' predict 'Flatten()' --data 'WAVFiles("b", length=2)'
    "$tenon" predict 'Flatten()' - --format csv <b >out 2>err ||
        complain 'a sound as standard input'
    also ',0\.0,0\.5,-1\.0$'
    head -c 45 b >cut.wav
    check 1 'cut\.wav: damaged WAV file' predict 'Flatten()' cut.wav
fi

# errors
check 2 'no INPUT and no --data' predict "$model"
check 2 'exclude each other' predict "$model" a.npy --data 'Digits()'
check 1 'none\.png: cannot be opened: No such file' predict "$model" none.png
head -c 100 digits.npy >cut.npy
check 1 'cut\.npy: cannot be read as an input: .*truncated' predict "$model" cut.npy
check 1 '--format: unknown, got "gif"' predict "$model" digits.npy --format gif
check 1 'it needs --output, which is missing' predict "$model" digits.npy --format npy
check 1 'wrong extension; expected \.npy' predict "$model" digits.npy --format npy --output a.pt
check 1 'a\.foo: no format has this extension' predict "$model" digits.npy --output a.foo
check 1 'none/a\.csv: cannot be written: No such' predict "$model" digits.npy --output none/a.csv
check 1 'wrong number of names, got 3; expected 10' \
    predict "$model" digits.npy --labels "$here/classes.json"
{ printf '\357\273\277first\r\n'; seq 2 10; echo; } >marked.txt
check 0 '^digits\.npy\[0\],[0-9]*,0,first,' predict "$model" digits.npy --labels marked.txt \
    --format csv --top 10
check 1 'labels: none: cannot be read: No such file' predict "$model" digits.npy --labels none
echo '["a", 1]' >wrong.json
check 1 'not a list of names' predict "$model" digits.npy --labels wrong.json
check 1 '--top: the results are not scores of classes' predict 'Identity()' digits.npy --top 1
check 1 'expected one for each' predict 'Flatten(0)' digits.npy
check 1 'the result has 3 dimensions, the first of size [0-9]' predict \
    'Conv2d(1, 2, 3)' digits.npy --format png --output wrong
check 1 '--device nowhere: not present' predict "$model" digits.npy --device nowhere
if test -e /dev/full; then
    "$tenon" predict "$model" digits.npy >/dev/full 2>err </dev/null
    test $? -eq 1 && grep -q 'standard output cannot be written' err || complain 'a full disk'
    check 1 'full: cannot be written' predict "$model" digits.npy --output /dev/full --format csv
fi
# tensors that do not fit may be inputs and targets
"$tenon" convert "$model" two.npz >/dev/null
check 1 "all 2 tensors of two\.npz are inputs; .* --data 'TensorFile\(\"two\.npz\"\)'" \
    predict "$model" two.npz
# A reader that ends early makes the command fail, and does not kill it.
(
    trap '' PIPE
    "$tenon" predict "$model" digits.npy --format csv 2>err
    echo $? >status
) | true
test "$(cat status)" -le 1 || complain 'a closed pipe'
exit $bad
