#!/bin/sh
# SPDX-License-Identifier: MIT
#
# tenon train with tables as spreadsheets write them, and with arrays of any dtype: what
# --standardize computes is in the file of the model, for eval and predict, and in checkpoints.
set -u
tenon=$abs_builddir/tools/tenon
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
unset TENON_DEVICE
"$tenon" info safetensors >/dev/null 2>&1 || {
    echo "SKIP: this build lacks safetensors"; exit 77; }
bad=0

# check CODE WORDS COMMAND...: tenon ends with this status and prints these words
check() {
    wanted=$1 words=$2
    shift 2
    "$tenon" "$@" >log 2>&1 </dev/null
    code=$?
    if test $code -ne "$wanted" || ! grep -qF -e "$words" log; then
        echo "tenon $*: status $code, wanted $wanted and \"$words\""
        cat log
        bad=1
    fi
}

# same WORDS COMMAND...: the last line that tenon prints is the same text
same() {
    wanted=$1
    shift
    got=$("$tenon" "$@" 2>&1 | tail -n 1)
    test "$got" = "$wanted" || { echo "tenon $*: got \"$got\", wanted \"$wanted\""; bad=1; }
}

# transform FILE WORDS: the transform that the file of the model keeps
transform() {
    "$tenon" inspect "$1" --json >log 2>&1
    grep -qF -e "$2" log || { echo "$1: the transform is not $2"; cat log; bad=1; }
}

# ---- a spreadsheet: a byte-order mark, quotes, missing values, texts, the label by its name ----
awk 'BEGIN {
    printf "\357\273\277\"size, in cm\",color,kind,age\r\n"
    for (i = 0; i < 40; i++)
        printf "\"%d\",%s,%s,%s\r\n", 2 * (i % 4) + 1, i % 4 < 2 ? "red" : "dark \"\"blue",
            i % 4 < 2 ? "cat" : "dog", i % 8 == 7 ? "NA" : 3
    printf ",,,\r\n" }' | sed 's/dark ""blue/"dark ""blue"""/' >pets.csv
table="Table('pets.csv', label='kind')"
set -- --model 'Linear(4, 2)' --optim 'Adam(lr=0.1)'
check 1 'samples are rows of a table; expected --standardize' train "$@" --data "$table" --out a
check 0 'standardized: 3 columns of the table, which become 4 numbers' train "$@" \
    --data "$table" --standardize --epochs 6 --out pets
# the sizes are 1, 3, 5, 7: mean 4, deviation sqrt(5); the age is always 3
transform pets/model.safetensors 'Columns({\"size, in cm\": (4, 2.23606798), \"color\": ['
transform pets/model.safetensors '"dark \\\"blue\\\"\", \"red\"], \"age\": (3, 1)})'
check 0 'accuracy    1.0000' eval pets/model.safetensors --data "$table"
# a row has its columns in any order, and more of them
printf 'age,color,size,"size, in cm"\n?,red,x,1.5\n4,"dark ""blue""",y,6\n' >new.csv
check 0 'new.csv[0]  cat' predict pets/model.safetensors new.csv
check 0 'new.csv[1]  dog' predict pets/model.safetensors new.csv
printf 'age,color\n3,red\n' >few.csv
check 1 'the row has no column "size, in cm"' predict pets/model.safetensors few.csv
printf 'age,color,"size, in cm"\n3,red,big\n' >wrong.csv
check 1 'column "size, in cm": wrong value, got "big"' predict pets/model.safetensors wrong.csv

# the message has the file and the row, and an infinite number is shown
check 1 'wrong.csv[0]: column "size, in cm"' predict pets/model.safetensors wrong.csv
printf 'age,color,"size, in cm"\ninf,red,1\n' >wrong.csv
check 1 'column "age": wrong value, got inf' predict pets/model.safetensors wrong.csv

# ---- numbers that are read as names are told: one odd cell, a comma in numbers ----
awk 'BEGIN { print "a;b;kind"
    for (i = 0; i < 30; i++) print (i == 7 ? "-" : i) ";0," i ";" i % 2 }' >odd.csv
table="Table('odd.csv', label='kind', separator=';')"
check 1 'column "a": 1 cell is no number, such as "-", so its 29 numbers are names' train "$@" \
    --data "$table" --standardize --out odd
check 1 "column \"b\" has 30 different texts, such as \"0,0\"" train "$@" --data "$table" \
    --standardize --out odd
check 1 "such as separator=';'" train "$@" --data "Table('odd.csv', label=-1)" --standardize \
    --out odd
table="Table('pets.csv', label='kind')"
# the transform of the file is used, or another one is computed, but not both
check 0 'from the file of the model' finetune pets --data "$table" --epochs 1 --out tuned
check 1 '--standardize: the transform has Columns already' finetune pets --data "$table" \
    --standardize --epochs 1 --out tuned2
# a model may have more outputs than the data has classes: these have numbers in place of names
check 0 'epoch 1/1' train --model 'Linear(4, 3)' --data "$table" --standardize --epochs 1 --out more
grep -q 'different texts' log && { echo "few texts are told, too"; bad=1; }
check 0 ',2,' predict more/model.safetensors new.csv --format csv

# ---- only the samples of the training count, and a run that is continued keeps the numbers ----
check 0 'epoch 2/2' train "$@" --data "$table" --standardize --val-split 0.5 --epochs 2 --out half
check 0 'epoch 1/1' train "$@" --data "$table" --standardize --val-split 0.5 --epochs 1 --out cut
check 0 'epoch 2/2' train "$@" --data "$table" --standardize --val-split 0.5 --epochs 2 --out cut \
    --resume
cmp half/model.safetensors cut/model.safetensors || { echo "resumed, it differs"; bad=1; }
"$tenon" inspect half/model.safetensors --json | grep -qF '(4, 2.23606798)' && {
    echo "the validation was counted"; bad=1; }
check 0 'accuracy' eval cut/checkpoints/best.checkpoint --data "$table"

# ---- numbers alone; labels from 1 on; labels that are other ones ----
awk 'BEGIN { print "a,b,label"
    for (i = 0; i < 30; i++) print 100 * (i % 3) "," 5 "," i % 3 + 1 }' >from1.csv
set -- --model 'Linear(2, 3)' --optim 'Adam(lr=0.1)' --epochs 8 --data "CSV('from1.csv')"
check 0 'standardized: 2 channels of the samples' train "$@" --standardize --out from1
transform from1/model.safetensors 'Normalize(mean=[100, 5], std=[81.6496581, 1])'
check 0 'accuracy    1.0000' eval from1/model.safetensors --data "CSV('from1.csv', label='label')"
printf 'a,b\n200,5\n' >row.csv
check 0 'row.csv[0]  3' predict from1/model.safetensors row.csv
printf '0,5,0\n100,5,1\n200,5,2\n' >from0.csv
check 1 'class 0 has another name' train "$@" --val "CSV('from0.csv', classes=['0', '1', '2'])" \
    --out b
check 1 'the classes are 3; those of --data are 3 (1, 2, 3)' train "$@" --val "CSV('from0.csv')" \
    --out b
printf '0,5,1\n100,5,2\n' >two.csv
check 1 'got 2 (1, 2); expected those of --data: 3 (1, 2, 3)' train "$@" --val "CSV('two.csv')" \
    --out b
check 0 'epoch 8/8' train "$@" --val "CSV('two.csv', classes=['1', '2', '3'])" --out b

# ---- arrays of any dtype: floats become those of the model, labels int64 ----
zero='\000\000\000\000\000\000\000\000' one='\000\000\000\000\000\000\360\077'
# arrays FILE DTYPE LABEL...: x, [4, 2], is zero, one; one, zero; ... as float64; y are labels
arrays() {
    file=$1 dtype=$2 bytes=$3
    shift 3
    head='{"x":{"dtype":"F64","shape":[4,2],"data_offsets":[0,64]},"y":{"dtype":"'$dtype'",'
    head=$head'"shape":[4],"data_offsets":[64,'$((64 + 4 * bytes))']}}'
    { printf "\\$(printf %03o ${#head})\\0\\0\\0\\0\\0\\0\\0%s" "$head"
        printf "$zero$one$one$zero$zero$one$one$zero"
        for label in "$@"; do printf "$label"; done; } >"$file"
}
arrays i32.safetensors I32 4 '\1\0\0\0' '\0\0\0\0' '\1\0\0\0' '\0\0\0\0'
arrays u8.safetensors U8 1 '\1' '\0' '\1' '\0'
arrays bool.safetensors BOOL 1 '\1' '\0' '\1' '\0'
arrays f64.safetensors F64 8 "$one" "$zero" "$one" "$zero"
for type in i32 u8 bool; do
    data="TensorFile('$type.safetensors')"
    check 0 'epoch 20/20' train --model 'Linear(2, 2)' --data "$data" --optim 'Adam(lr=0.1)' \
        --epochs 20 --out $type
    check 0 'accuracy    1.0000' eval $type/model.safetensors --data "$data"
done
cmp i32/model.safetensors u8/model.safetensors || { echo "int32 and uint8 differ"; bad=1; }
set -- --model 'Linear(2, 1)' --loss 'MSELoss()' --epochs 2
check 0 'epoch 2/2' train "$@" --data "TensorFile('f64.safetensors')" --out f64
check 0 'epoch 2/2' train "$@" --data "TensorFile('f64.safetensors')" --compile-step --out f64c
cmp f64/model.safetensors f64c/model.safetensors || { echo "float64: a plan differs"; bad=1; }
check 0 'epoch 2/2' train "$@" --data "TensorFile('i32.safetensors', target='number')" --out number
cmp f64/model.safetensors number/model.safetensors || { echo "target='number' differs"; bad=1; }
# inputs of integers may be tokens: they are converted only where it is said
arrays2='{"x":{"dtype":"I32","shape":[2,1],"data_offsets":[0,8]},"y":{"dtype":"I64","shape":[2],'
arrays2=$arrays2'"data_offsets":[8,24]}}'
{ printf "\\$(printf %03o ${#arrays2})\\0\\0\\0\\0\\0\\0\\0%s" "$arrays2"
    printf '\3\0\0\0\4\0\0\0\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0'; } >counts.safetensors
set -- --model 'Linear(1, 2)' --data "TensorFile('counts.safetensors')" --epochs 1
check 1 "the input is int32, which --transform 'ToFloat()' converts" train "$@" --out c
check 0 'epoch 1/1' train "$@" --transform 'ToFloat()' --out c
check 0 'standardized: 1 channel' train "$@" --standardize --out counts
transform counts/model.safetensors '[ToFloat(), Normalize(mean=[3.5], std=[0.5])]'
exit $bad
