#!/bin/sh
# SPDX-License-Identifier: MIT
#
# tenon bench: cases, counts and errors. No test looks at a time.
. "${abs_srcdir:-$srcdir}/tests/tools/commands.sh"
net='Sequential(Linear(64, 100), ReLU(), Linear(100, 10))'

# 64 * 100 + 100 * 10 multiply-adds for each sample; the quantiles are in order
check 0 '' bench "$net" --input 8,64 --batch 1,4 --threads 1,2 --repeat 12 --json
"$PERL" -MJSON::PP -e 'local $/; my $j = decode_json(<STDIN>); my @c = @{$j->{cases}};
    die "cases" unless @c == 4 && $j->{parameters} == 7510;
    die "order" unless join(" ", map { "$_->{threads}/$_->{batch}" } @c) eq "1/1 1/4 2/1 2/4";
    for (@c) {
        die "counts" unless $_->{runs} == 12 && $_->{multiply_adds} == 7400 * $_->{batch};
        die "times" unless $_->{p10_ms} <= $_->{median_ms} && $_->{median_ms} <= $_->{p90_ms} &&
            $_->{p90_ms} <= $_->{p99_ms} && $_->{p10_ms} > 0;
        my $rate = $_->{gflops} * $_->{median_ms} * 1e6 / $_->{multiply_adds};
        die "rate" unless abs($rate - 2) < 0.01;
        die "memory" unless $_->{peak_bytes} >= 4 * (7510 + 64 * $_->{batch});
    }' <out || complain 'cases'
check 0 '^DEVICE +THREADS +BATCH +RUNS +MEDIAN ms +P10 +P90 +P99 +SAMPLES/S +GFLOP/S +MEMORY$' \
    bench "$net" --input 3,64 --repeat 3
also '^cpu:0 +[0-9]+ +3 +3 ' '^parameters +7510$' '^multiply-adds +0\.0222 M .* of 3$'
check 0 'counted as three forward' bench "$net" --input 2,64 --repeat 3 --train
check 0 '"train": true' bench "$net" --input 2,64 --repeat 3 --train --json --dtype float64
check 0 '"runs": [0-9][0-9]' bench "$net" --input 2,64 --seconds 0.01 --json
check 0 '"parameters": 20$' bench 'LazyLinear(4)' --input 2,4 --repeat 1 --json
check 0 '^cpu:0 ' bench 'ReLU()' --input 2,4 --repeat 1 --device cpu,cpu:0
check 0 '^cpu:0 ' bench 'Bilinear(3, 4, 2)' --input 2,3 --input 2,4 --repeat 1

# plans
check 0 'a run of a plan' bench "$net" --input 2,64 --repeat 3 --compiled
check 0 '"compile_ms": [0-9.]+' bench "$net" --input 2,64 --repeat 3 --passes 'epilogue, dead' \
    --json
check 0 '"multiply_adds": 14800' bench "$net" --input 2,64 --repeat 3 --compiled --json
check 0 '^cpu:0 ' bench 'Bilinear(3, 4, 2)' --input 2,3 --input 2,4 --repeat 1 --compiled
check 1 'pass.* "nothing"' bench "$net" --input 2,64 --repeat 1 --passes nothing
check 2 'a plan records no gradients' bench "$net" --input 2,64 --compiled --train

# integers
check 0 '' bench 'Embedding(10, 4)' --input 8,3:int64 --range 0,10 --repeat 5
check 1 'index 2[0-9] is out of bounds' bench 'Embedding(10, 4)' --input 8,3:int64 \
    --range 20,30 --repeat 5
check 2 '--range: wrong value, got "5,5"' bench 'Embedding(10, 4)' --input 8,3:int64 --range 5,5

# errors
check 2 '--input is missing' bench "$net"
check 2 '--batch: wrong value, got "1,x"' bench "$net" --input 1,64 --batch 1,x
check 1 'not a shape' bench "$net" --input 1,,64
check 1 'wrong shape, got \[2, 63\]' bench "$net" --input 2,63 --repeat 1
check 1 '"error": ' bench "$net" --input 2,63 --repeat 1 --json
check 1 '--device nowhere: not present' bench "$net" --input 2,64 --device cpu,nowhere
check 1 'no layer' bench nothing --input 2,64
exit $bad
