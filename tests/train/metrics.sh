#!/bin/sh
# SPDX-License-Identifier: MIT
#
# What tenon train measures: the search for a learning rate, the metrics of the validation and the
# best weights by each of them, the worst samples by their files, as tenon eval has them, too.
. "${abs_srcdir:-$srcdir}/tests/tools/commands.sh"
digits="Digits(split='test')"
net='Sequential(Flatten(), Linear(64, 10))'

# ---- a learning rate: the sweep, its average and the suggestion are computed again here ----
set -- train "$net" --data "$digits" --seed 3 --optim 'Adam(lr=1e-7)'
check 0 '' "$@" --find-lr --chart rates.svg --json
cp out rates.json
"$PERL" -MJSON::PP -we 'local $/; my $j = decode_json(<STDIN>); my @p = @{$j->{points}};
    my ($least, $steep, $fall, $sum) = (0, 0, 0, 0);
    for my $i (0 .. $#p) {
        $sum = 0.9 * $sum + 0.1 * $p[$i]{loss};
        my $rate = 1e-7 * 1e8 ** ($i / 99);
        die "rate $i" if abs($p[$i]{lr} / $rate - 1) > 1e-9;
        die "average $i" if abs($p[$i]{smooth} / ($sum / (1 - 0.9 ** ($i + 1))) - 1) > 1e-9;
        $least = $i if $p[$i]{smooth} < $p[$least]{smooth};
    }
    for my $i (1 .. $least) {
        my $here = $p[$i - 1]{smooth} - $p[$i + 1 > $#p ? $i : $i + 1]{smooth};
        ($steep, $fall) = ($i, $here) if $here > $fall;
    }
    die "least" if $j->{least}{lr} != $p[$least]{lr};
    die "suggestion" if $j->{suggestion} != $p[$steep]{lr} || $p[$steep]{lr} > $p[$least]{lr};
    die "no loss falls" if $p[$least]{smooth} > 0.7 * $p[0]{smooth};
    printf "%.2g\n", $j->{suggestion}' <rates.json >rate || complain 'the sweep is another one'
test "$(tail -n 1 rates.svg)" = '</svg>' && grep -q "lr=$(cat rate)<" rates.svg ||
    complain 'rates.svg lacks the suggestion'
# the first loss is that of a training
check 0 '' "$@" --max-steps 1 --out run
"$PERL" -MJSON::PP -we 'local $/; my $j = decode_json(<STDIN>);
    exit !(abs($j->{points}[0]{loss} / $ARGV[0] - 1) < 1e-9)' \
    "$(awk -F, 'NR == 2 { print $2 }' run/metrics.csv)" <rates.json || complain 'the first loss'
# as text; nothing is written to a run that is there
find run -type f -exec cksum {} + >before
check 0 "^suggestion: lr=$(cat rate), where the loss falls fastest\$" "$@" --find-lr --out run
also '^loss \(average\) by learning rate$' '^ +1e-7 +1e-5 +1e-3 +0\.1 +10$'
find run -type f -exec cksum {} + | cmp - before || complain '--find-lr changed the run'
# a rate that is too large ends the sweep; a loss that cannot fall gets no suggestion
line="CSV('$files/line.csv', target='number')"
check 0 ': the loss (became too large|was no longer finite)$' train 'Linear(2, 1)' --data "$line" \
    --loss 'MSELoss()' --optim 'SGD(lr=1)' --find-lr --accumulate 2
printf '0,0\n' >zero.csv
check 0 '^no suggestion: the loss did not fall$' train 'Linear(1, 1, bias=False)' --find-lr \
    --data "CSV('zero.csv', target='number')" --loss 'MSELoss()' --max-steps 10
# what is wrong with the data is a failure with the words of a training, in each step
awk 'BEGIN { for (i = 0; i < 20; i++) print (i == 7 ? "nan" : i) ",1," i % 3 }' >nan.csv
bad_data="CSV('nan.csv', missing=inf)"
for size in 20 4; do
    check 1 'the input of the batch has NaN or infinity; expected finite samples$' train \
        'Linear(2, 3)' --data "$bad_data" --batch-size $size --out bad$size
    tail -n 1 err >bad.train
    check 1 'the input of the batch has NaN or infinity; expected finite samples$' train \
        'Linear(2, 3)' --data "$bad_data" --batch-size $size --find-lr
    test $size -eq 4 || sed 's/--find-lr: //' err | cmp bad.train - || complain 'other words'
done
check 1 '--find-lr: --max-steps: too few, got 9; expected at least 10' "$@" --find-lr --max-steps 9
check 2 '--find-lr and --resume: both are given' "$@" --find-lr --resume
check 2 '--chart: given without --find-lr' "$@" --chart x.svg --out x

# ---- metrics of the validation are those of tenon eval (eval.sh compares these with PyTorch) ----
set -- train "$net" --data "$digits" --seed 3 --epochs 4 --optim 'Adam(lr=0.03)' \
    --schedule 'ExponentialLR(gamma=8.0)'
check 0 '^best: epoch [1-4], val_f1 0\.' "$@" --val "$digits" --best f1 --out f1
check 0 '"val_auc": ' "$@" --val "$digits" --best auc --out auc --json
check 0 '' eval f1/model.safetensors --data "$digits" --topk 5 --json --batch-size 100
cp out eval.json
# best COLUMN: the epoch with the largest value in the column
cat >best.pl <<'END'
my ($name, $path) = @ARGV;
open my $in, '<', $path or die;
my @names = split /,/, <$in> =~ s/\n//r;
my %at = map { $names[$_] => $_ } 0 .. $#names;
my ($best, $most, @row);
while (<$in>) {
    chomp;
    my @cells = split /,/, $_, -1;
    next if $cells[$at{epoch}] eq '';
    @row = @cells;
    my $value = $cells[$at{"$name/validation"}];
    ($best, $most) = ($cells[$at{epoch}], $value) if !defined $most || $value > $most;
}
printf "%d %.4f %s\n", $best, $most,
    join ' ', map { sprintf '%.9g', $row[$at{"$_/validation"}] } qw(accuracy top5 f1 auc);
END
set -- $("$PERL" best.pl f1 f1/metrics.csv)
check 0 "^best: epoch $1, val_f1 $2\$" train --resume --out f1
"$PERL" -MJSON::PP -we 'local $/; my $j = decode_json(<STDIN>); my @k = qw(accuracy top_accuracy f1
    auc); for (0 .. 3) { die "$k[$_]: $j->{$k[$_]}" if abs($j->{$k[$_]} - $ARGV[$_]) > 1e-8; }' \
    "$3" "$4" "$5" "$6" <eval.json || complain 'other metrics than those of eval'
set -- $("$PERL" best.pl auc auc/metrics.csv)
check 0 "^best: epoch $1, val_auc $2\$" train --resume --out auc
check 1 '--best: f1; here loss' train --resume --out f1 --best loss
check 2 '--best: unknown metric, got "mse"; expected loss, accuracy, top5, f1 or auc' train \
    "$net" --data "$digits" --best mse --out x
check 1 '--best auc: a training without validation data has none; expected --val' train "$net" \
    --data "$digits" --best auc --epochs 1 --out x1
check 1 '--best accuracy: the data has no classes; expected data with classes, or --best loss' \
    train 'Linear(2, 1)' --data "$line" --val "$line" --loss 'MSELoss()' --best accuracy --out x2
awk 'BEGIN { for (i = 0; i < 12; i++) print i ",1," i % 3 }' >three.csv
three="CSV('three.csv')"
check 1 '--best top5: the data has 3 classes; expected more than 5, or --best accuracy' \
    train 'Linear(2, 3)' --data "$three" --val "$three" --best top5 --epochs 1 --out x3
for name in x1 x2 x3; do
    test -e $name/metrics.csv && complain "$name: trained before --best was refused"
done
# the accuracy of the training, and what is given without --best, decide as before
check 0 '^weights: y1/model\.safetensors$' train 'Linear(2, 3)' --data "$three" --best accuracy \
    --epochs 1 --out y1
check 0 '^best: epoch 1, val_accuracy ' train 'Linear(2, 3)' --data "$three" --val "$three" \
    --epochs 1 --out y2
# what only the results tell keeps the checkpoint, from which the weights can be had
check 1 '--best auc: the validation has none; expected results for classes, at most 4,194,304' \
    train 'Linear(2, 3)' --data "$three" --val-split 0.1 --best auc --epochs 1 --out y3
ls y3/checkpoints/step-*.checkpoint >/dev/null 2>&1 || complain 'no checkpoint of the epoch'
check 0 '^weights: y3/model\.safetensors$' train --resume --out y3

# ---- the worst samples by their files ----
pictures=$here/../data/files/odd/all
mkdir -p pets/cat pets/dog
cp "$pictures/bmp_24.bmp" "$pictures/bmp_4.bmp" pets/cat
cp "$pictures/bmp_32.bmp" "$pictures/bmp_core.bmp" pets/dog
set -- 'Sequential(Flatten(), Linear(105, 2))' --data 'ImageFolder("pets")' --transform 'ToFloat()'
check 0 '' train "$@" --val 'ImageFolder("pets")' --epochs 1 --out pictures
for name in cat/bmp_24 cat/bmp_4 dog/bmp_32 dog/bmp_core; do
    grep -q "title=\"pets/$name\\.bmp\"" pictures/report.html || complain "the page lacks $name"
done
check 0 '' eval pictures/model.safetensors --data 'ImageFolder("pets")' --worst 3 --json
"$PERL" -MJSON::PP -we 'local $/; my $j = decode_json(<STDIN>); my @w = @{$j->{worst}};
    my @f = map { "pets/$_.bmp" } qw(cat/bmp_24 cat/bmp_4 dog/bmp_32 dog/bmp_core);
    die "number" if @w != 3;
    for (@w) { die "file" if $_->{file} ne $f[$_->{index}] ||
        $_->{true} ne ($_->{index} < 2 ? "cat" : "dog"); }
    die "order" if $w[0]{loss} < $w[1]{loss} || $w[1]{loss} < $w[2]{loss}' <out ||
    complain 'the worst samples'
# after a damaged file the places are not known; of sounds the files are, of tables the rows
printf BM >pets/cat/bmp_3.bmp
check 0 '^[0-9.]+ +(cat|dog) +(cat|dog) +\?$' eval pictures/model.safetensors \
    --data 'ImageFolder("pets")' --worst 4 --skip-damaged
also ' pets/cat/bmp_24\.bmp$'
test $(grep -c ' [?]$' out) -eq 3 || complain 'a name that may be wrong'
check 0 ' sample 0$' eval "$net" --data "$digits" --worst 359 --batch-size 359
check 1 '--worst: results are no scores of classes' eval "$files/line.safetensors" --data "$line" \
    --worst 1
exit $bad
