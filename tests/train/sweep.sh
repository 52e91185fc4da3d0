#!/bin/sh
# SPDX-License-Identifier: MIT
#
# tenon sweep: the values of its trials, the table and the best trial, trials that fail, a sweep
# that is killed or stopped and continues, and what is refused.
. "${abs_srcdir:-$srcdir}/tests/tools/commands.sh"
TENON_NUM_THREADS=1
TENON_PLUGINS='!backend-opencl,!backend-cuda,!foreign,!models,!passes,!profile,!prune'
export TENON_NUM_THREADS TENON_PLUGINS
awk 'BEGIN { for (i = 0; i < 12; i++) print i % 5 "," i % 4 "," i % 3 }' >train.csv
awk 'BEGIN { for (i = 0; i < 6; i++) print i % 4 "," i % 5 "," i % 3 }' >val.csv
awk 'BEGIN { for (i = 0; i < 8; i++) print i ",1," 2 * i }' >line.csv

# sweep ARGUMENT...: with the data of this test
sweep() {
    wanted=$1 pattern=$2
    shift 2
    check "$wanted" "$pattern" sweep 'Sequential(Linear(2, {wide}), ReLU(), Linear({wide}, 3))' \
        --data "CSV('train.csv')" --val "CSV('val.csv')" --epochs 2 "$@"
}
# column NUMBER FILE: a column of a table, without its head
column() { awk -F, -v at="$1" 'NR > 1 { print $at }' "$2"; }

# ---- random values: an option of the optimizer, of the command, and a place in a spec ----
set -- --set lr=1e-4:1e-1 --set wide=2,4,8 --set batch-size=4:12 --set optim.weight_decay=0.0:0.5 \
    --trials 4 --optim 'AdamW(lr=1, betas=(0.8, 0.9))'
sweep 0 '^best: trial [1-4], val_accuracy 0\.[0-9]+ in epoch [12], in run/trial-00[1-4]$' "$@" \
    --out run
cp out text
head -n 1 run/trials.csv | grep -qx 'trial,state,metric,best,best_epoch,epochs,message,lr,wide,'\
'batch-size,optim.weight_decay' || complain 'the head of the table'
"$PERL" -we '<STDIN>; my (%seen, $below, $rows);
    while (<STDIN>) {
        chomp;
        my ($n, $state, $metric, $best, $epoch, $epochs, $words, $lr, $wide, $size, $decay) =
            split /,/;
        die "row $n" if $n != ++$rows || $state ne "finished" || $epochs != 2 || $words ne "";
        die "lr $lr" if $lr < 1e-4 || $lr > 1e-1 || $seen{$lr}++;
        die "wide $wide" if $wide !~ /^[248]$/;
        die "size $size" if $size !~ /^([4-9]|1[0-2])$/;
        die "decay $decay" if $decay !~ /^0\.\d+$/ || $decay > 0.5;
        $below += $lr < 0.01;
        # the trial had these settings: its rows have the number of steps, and the metric
        open my $csv, "<", sprintf "run/trial-%03d/metrics.csv", $n or die;
        my ($names, @lines) = <$csv>;
        my @names = split /,/, $names;
        my ($at) = grep { $names[$_] eq "accuracy/validation" } 0 .. $#names;
        my ($most) = sort { $b <=> $a } map { (split /,/)[$at] || 0 } @lines;
        die "best of $n: $best, not $most" if $best != $most;
        my ($step) = split /,/, $lines[-1];
        my $batches = int((12 + $size - 1) / $size);
        die "steps of $n: $step" if $step != 2 * $batches;
    }
    die "rows $rows" if $rows != 4;
    die "not drawn by the logarithm: $below" if $below < 2' <run/trials.csv ||
    complain 'the values of the trials'
# the table is in the order of the results, and the command of the best trial trains it again
sed -n '/^TRIAL/,/^$/p' text | awk '$1 ~ /^[0-9]+$/ { print $2 }' >results
test "$(wc -l <results)" -eq 4 && sort -rn results | cmp - results || complain 'the order'
best=$(sed -n 's/^best: .* in \(run.*\)/\1/p' text)
again=$(sed -n 's/^again: tenon //p' text)
eval "\"$tenon\" $again" >out 2>&1 && cmp "$best/best.safetensors" run/again/best.safetensors ||
    complain "again: $again"
echo "$again" | grep -q 'AdamW(lr=0\.[0-9]*, betas=(0.8, 0.9), weight_decay=0\.[0-9]*)' ||
    complain 'the spec of the optimizer'
# another seed has other values; the same one the same
sweep 0 '' "$@" --trials 2 --out same --json
column 8 same/trials.csv >same.lr
column 8 run/trials.csv | head -n 2 | cmp -s - same.lr || complain 'the seed decides the values'
"$PERL" -MJSON::PP -we 'local $/; my $j = decode_json(<STDIN>);
    my ($best) = sort { $b <=> $a } map { $_->{val_accuracy} } @{$j->{trials}};
    die "best" if $j->{best}{val_accuracy} != $best || $j->{metric} ne "val_accuracy";
    my $t = $j->{trials}[$j->{best}{trial} - 1];
    die "trial" if $t->{val_accuracy} != $best || $t->{folder} ne $j->{best}{folder};
    die "command" if index($j->{best}{command}, "lr=$t->{settings}{lr},") < 0;
    die "table" if $j->{table} ne "same/trials.csv";
    print "$_->{settings}{lr}\n" for @{$j->{trials}}' <out >json.lr && cmp json.lr same.lr ||
    complain '--json'
grep -q '^trial 2/2  lr=' err || complain 'with --json the progress goes to standard error'
sweep 0 '' --set lr=1e-4:1e-1 --set wide=2,4,8 --trials 1 --seed 2 --out other
test "$(column 8 other/trials.csv)" != "$(head -n 1 same.lr)" || complain 'the seed has no effect'

# ---- a grid; the least loss is the best ----
check 0 '^best: trial [1-6], val_loss ' sweep 'Linear(2, 1)' --data "CSV('line.csv',
    target='number')" --val "CSV('line.csv', target='number')" --loss 'MSELoss()' --epochs 1 \
    --set lr=1e-4:1e-2:3 --set 'optim=SGD(lr=1),Adam(lr=1)' --grid --out grid
awk -F, 'NR > 1 { print $8, $9 }' grid/trials.csv >values
cat >wanted <<'END'
0.0001 SGD(lr=1)
0.0001 Adam(lr=1)
0.001 SGD(lr=1)
0.001 Adam(lr=1)
0.01 SGD(lr=1)
0.01 Adam(lr=1)
END
cmp wanted values || complain 'the grid'
sed -n '/^TRIAL/,/^$/p' out | awk '$1 ~ /^[0-9]+$/ { print $2 }' >results
test "$(wc -l <results)" -eq 6 && sort -g results | cmp - results || complain 'the least loss'

# ---- a trial that fails is listed, and the others go on; all that fail are a failure. More trials
# than there are combinations are not run ----
sweep 0 '^best: trial 2, ' --set 'optim=SGD(momentum=-1),Adam(lr=0.01)' --set wide=2,2 --grid \
    --out broken
also '^trial 1/2  .*  failed: .*momentum value: -1' '^1 +- +- +failed +optim=SGD' \
    '^ .*momentum value: -1'
test "$(column 2 broken/trials.csv | tr '\n' ' ')" = 'failed finished ' || complain 'the states'
sweep 1 '"best": null' --set wide=1:9:linear:3 --trials 9 --init nothing.pt --out none --json
also '^ +"message": "nothing\.pt: cannot open'
column 8 none/trials.csv | sort | tr '\n' ' ' | grep -qx '1 5 9 ' || complain 'each one once'
check 1 '^no trial has a result$' sweep --resume --out none
# a failure is not run again, unless that is asked for
cp broken/trial-001/log.txt failure
check 0 '^best: trial 2' sweep --resume --out broken
cmp failure broken/trial-001/log.txt || complain 'a failed trial ran again'
check 0 '^trial 1/2  .*failed' sweep --resume --retry --out broken
cmp -s failure broken/trial-001/log.txt && complain '--retry did not run the failed trial'
grep -q '^trial 2/2' out && complain '--retry ran the other trial'

# ---- what is refused: with words, before anything runs ----
refuse() { # PATTERN ARGUMENT...
    pattern=$1
    shift
    sweep 2 "^tenon sweep: $pattern" "$@" --out bad
    test ! -e bad || complain 'a folder was made'
}
refuse '--set: unknown name, got "lrr"; did you mean "lr"\?' --set lrr=1:2
refuse '--set: unknown name, got "batchsize"; did you mean "batch-size"\?' --set batchsize=1:2
refuse '--set: unknown name, got "loss\.reductio"; did you mean "loss\.reduction"\?' \
    --set loss.reductio=1:2 --loss 'CrossEntropyLoss()'
refuse '--set: unknown name, got "model\.p"; expected --model with a spec that has p' \
    --set model.p=1:2
refuse '--set: unknown name, got "quite_another"; expected an option' --set quite_another=1:2
refuse '--set: out cannot change from trial to trial' --set out=a,b
refuse '--set: batch-size is given twice' --set batch-size=1:2 --set batch_size=2,3
refuse '--batch-size: wrong, got "0"' --set batch-size=0,4
refuse '--trials: wrong, got "0"; expected a whole number from 1 to 1000' --set wide=1:2 --trials=0
refuse '--grid and --trials: both' --set wide=1:2:2 --grid --trials 3
refuse '--set: a range in a grid needs a number of points, got "wide=1:2"' --set wide=1:2 --grid
refuse '--grid: too many combinations' --set wide=1:99:linear:99 --set lr=1.0:2.0:99 --grid
refuse '--find-lr: it is no option of this command; expected tenon train --find-lr' \
    --set wide=1:2 --find-lr
refuse '--chart: it is no option of this command' --set wide=1:2 --chart x.svg
for text in =1:2 wide=1 wide=1:1 wide=-1e308:1e308 wide=1:2:3:4 wide=0:1:log wide=1, \
    'wi de=1:2'; do
    refuse "--set: .*, got \"$text\"; expected NAME=LOW:HIGH" --set "$text"
done

# ---- a sweep that continues: with more trials, not with other settings ----
set -- --set lr=1e-4:1e-1 --set wide=2,4,8 --out more
sweep 0 '' "$@" --trials 2
cp more/trial-001/log.txt first
sweep 1 'more has a sweep; expected --resume to continue it' "$@" --trials 4
sweep 1 '^  --set: lr=1e-4:1e-1; here lr=1e-4:1$' --resume --set lr=1e-4:1 --set wide=2,4,8 \
    --epochs 3 --out more
also '^  --epochs: 2; here 3$' '2 settings differ from the sweep in more; expected the same'
sweep 1 '^  --set: wide=2,4,8; here not given$' --resume --set lr=1e-4:1e-1 --seed 3 --out more
also '^  --seed: not given; here 3$'
check 1 'nothing has no sweep; expected the folder of a sweep' sweep --resume --out nothing
check 0 '^trial 3/3' sweep --resume --trials 3 --out more --workers 1
cmp first more/trial-001/log.txt || complain 'a trial ran twice'
test "$(column 1 more/trials.csv | tr '\n' ' ')" = '1 2 3 ' || complain 'not all trials'
check 1 'expected the file as the sweep wrote it, and at least as many --trials' sweep --resume \
    --trials 2 --out more
for damage in 's/^2,finished/2,done/' 's/^1,\(.*\),.*/1,\1,9/' 's/^3,.*/3,failed/'; do
    cp -r more hurt
    sed "$damage" more/trials.csv >hurt/trials.csv
    check 1 '^tenon: --resume: hurt/trials.csv: no trial of this sweep' sweep --resume --out hurt
    rm -rf hurt
done
cp -r more hurt
sed 's/^grid,false/grid/' more/sweep.csv >hurt/sweep.csv
check 1 '^tenon: --resume: hurt/sweep.csv: damaged, got "grid"' sweep --resume --out hurt
sed 's/^trials,3/trials,1001/' more/sweep.csv >hurt/sweep.csv
check 1 '^tenon: --resume: hurt/sweep.csv: trials: wrong, got "1001"' sweep --resume --out hurt

# ---- killed before the table of the first trial, or stopped in the second one: the same end ----
set -- --set lr=1e-3:1e-1 --set wide=2,4 --trials 2 --out
sweep 0 '' "$@" whole
fault=$abs_builddir/tests/train/.libs/fault.so
if test "${TN_SANITIZERS-no}" = no && test -f "$fault"; then
    (TN_FAULT=kill:6 LD_PRELOAD=$fault
    export TN_FAULT LD_PRELOAD
    exec "$tenon" sweep 'Sequential(Linear(2, {wide}), ReLU(), Linear({wide}, 3))' \
        --data "CSV('train.csv')" --val "CSV('val.csv')" --epochs 2 "$@" cut) >out 2>err
    test $? -eq 137 || complain 'the sweep was not killed'
    test -f cut/trials.csv && complain 'it was killed too late'
    sweep 0 '' --resume --retry "$@" cut
    cmp whole/trials.csv cut/trials.csv && cmp whole/trial-002/best.safetensors \
        cut/trial-002/best.safetensors || complain 'the killed sweep has another end'
    find cut -name '*.part' | grep . && complain 'a part of a file is left'
    # a trial that is killed alone; the sweep writes its files in fewer calls
    (TN_FAULT=kill:12 LD_PRELOAD=$fault
    export TN_FAULT LD_PRELOAD
    sweep 1 '^trial 2/2  .*  failed: the process ended by signal 9 \(Killed\)$' "$@" lonely
    exit $bad) || bad=1
fi
# a signal to the sweep ends its trial with a checkpoint; again if the trial had ended before
set -- --set wide=2,2 --set epochs=1,60 --grid --out
sweep 0 '' "$@" long
code=0 tries=0
while test $code -eq 0 && test $tries -lt 9; do
    rm -rf stop
    tries=$((tries + 1))
    "$tenon" sweep 'Sequential(Linear(2, {wide}), ReLU(), Linear({wide}, 3))' \
        --data "CSV('train.csv')" --val "CSV('val.csv')" --epochs 2 "$@" stop >out 2>err &
    sweep=$!
    until ls stop/trial-002/checkpoints/*.checkpoint >/dev/null 2>&1 || ! kill -0 $sweep; do
        sleep 0.01
    done
    kill -TERM $sweep
    wait $sweep
    code=$?
done
test $code -eq 143 && grep -q '^tenon: stopped with 1 of 2 trials; --resume continues$' err ||
    complain 'a sweep that is stopped'
test "$(column 2 stop/trials.csv | tr '\n' ' ')" = 'finished stopped ' || complain 'the states'
check 0 '^trial 2/2' sweep --resume --out stop
grep -q 'continues after step' stop/trial-002/log.txt || complain 'the trial began again'
cmp long/trials.csv stop/trials.csv && cmp long/trial-002/model.safetensors \
    stop/trial-002/model.safetensors || complain 'the stopped sweep has another end'
exit $bad
