#!/bin/sh
# SPDX-License-Identifier: MIT
#
# tenon profile and TENON_PROFILE: tables, files, failures. No test looks at a time.
. "${abs_srcdir:-$srcdir}/tests/tools/commands.sh"
net='Sequential(fc=Linear(64, 100), act=ReLU(), out=Linear(100, 10))'
TMPDIR=$work
export TMPDIR
unset TENON_PROFILE

# a command of tenon: tables by operator and module, the page, the trace
check 0 '^name +self +self % +total +calls +average +memory +peak +FLOP/s +of ceiling$' \
    profile --trace trace.json --page=page.html bench "$net" --input 8,64 --repeat 3
also '^parameters +7510$' '^linear +' '^name +self +self % +total +backward ' \
    '^Sequential\.fc +' '^page: page\.html$' '^trace: trace\.json$'
"$PERL" -MJSON::PP -e 'local $/; open my $in, "<", "trace.json" or die; my $j = decode_json(<$in>);
    my @x = grep { $_->{ph} eq "X" } @{$j->{traceEvents}};
    my @linear = grep { $_->{name} eq "linear" } @x;
    die "records" unless grep { $_->{args}{module} eq "Sequential.fc" } @linear;
    for (@x) {
        die "members" if grep { !defined } @{$_}{qw(ts dur pid tid name cat)};
        die "times" unless $_->{ts} >= 0 && $_->{dur} >= 0;
    }' 2>err >out || complain 'the trace'
if command -v python3 >/dev/null 2>&1; then
    python3 -c 'import json; json.load(open("trace.json"))' 2>err >out || complain 'python'
fi
grep -q '</html>' page.html || complain 'the page'
grep -Eq '(href|src)=' page.html && complain 'the page refers to other files'

# any program, with the default name of the page; options end before the command
check 0 '^linear +' profile -- env "$tenon" bench "$net" --input 8,64 --repeat 3
test -s profile.html || complain 'no profile.html'
rm profile.html
check 0 '^linear +' profile --no-page sh -c "'$tenon' bench '$net' --input 8,64 --repeat 3"
test ! -e profile.html || complain 'a page all the same'

# the status of the command; nothing is left in the folder for temporary files
check 7 'nothing was recorded: sh ended with status 7; it called no operator' \
    profile sh -c 'exit 7'
check 0 'nothing was recorded: true ended with status 0; it called no operator' profile true
grep -q '^page: ' out && complain 'a page that was not written'
check 137 'nothing was recorded: sh ended with status 137; .*a signal or _exit' \
    profile sh -c 'kill -KILL $$'
check 127 '/no/such/program: cannot be started' profile /no/such/program
check 1 'wrong shape, got' profile --no-page bench "$net" --input 8,63 --repeat 3
also '^Sequential\.fc +'
ls -d tenon-profile-* 2>/dev/null && complain 'folders are left'

# wrong usage
check 2 'too few arguments' profile
check 2 'unknown option --bad' profile --bad bench
check 2 'a value is missing after --trace' profile --trace
check 2 '--page: wrong name, got page\.txt; expected a name' profile --page page.txt true
check 2 '--trace: wrong name, got a:b\.json; expected a name' profile --trace a:b.json true
check 0 '--no-page +writes no page' profile --help

# an asynchronous device: its own times in the trace and in the tables (the fake driver)
if test -f "$abs_builddir/plugins/.libs/backend-cuda.so" &&
    test -f "$abs_builddir/tests/.libs/fake-cuda.so"; then
    TENON_CUDA_DRIVER=$abs_builddir/tests/.libs/fake-cuda.so
    TENON_CUDA_KERNELS=$here/../fake-cuda/kernels
    TENON_CUDA_BLAS=none
    export TENON_CUDA_DRIVER TENON_CUDA_KERNELS TENON_CUDA_BLAS
    check 0 '^name +self +self % +total +device +calls ' \
        profile --no-page --trace cuda.json bench "$net" --input 8,64 --repeat 3 --device cuda:0
    grep -q '"cat":"device","name":"bmm"' cuda.json || complain 'no times of the device'
    unset TENON_CUDA_DRIVER TENON_CUDA_KERNELS TENON_CUDA_BLAS
fi

# TENON_PROFILE: files that cannot be written are warnings, and the program runs on
TENON_PROFILE=$work/no/trace.json:$work/good.json:$work/bad.xml
export TENON_PROFILE
check 0 '^parameters +7510$' bench "$net" --input 8,64 --repeat 3
also 'warning: .*TENON_PROFILE: .*no/trace\.json: cannot be written: No such file' \
    'warning: .*TENON_PROFILE: .*unknown kind of file, got .*bad\.xml'
grep -q '"name":"linear"' good.json || complain 'no trace'
check 0 "^TENON_PROFILE +$work" env
# the limit, and its option
rm good.json
TENON_PROFILE=$work/good.json
TENON_PROFILE_LIMIT=1
export TENON_PROFILE_LIMIT
check 0 '' bench "$net" --input 8,64 --repeat 9000
grep -q '"dropped":[1-9]' good.json || complain 'no record was dropped'
# one warning for a wrong value: the variable, the value, what is accepted
one_warning() {
    check 0 "warning: .*$1" bench "$net" --input 8,64 --repeat 3
    cat out err >all
    test "$(grep -c 'warning: ' all)" = 1 || complain 'not one warning'
    grep -q 'no plugin provides' all && complain 'the plugin is there'
}
for TENON_PROFILE_LIMIT in 0 -1 1048577; do
    one_warning \
        "TENON_PROFILE_LIMIT: out of range, got $TENON_PROFILE_LIMIT MiB; expected 1 to 1048576"
done
for TENON_PROFILE_LIMIT in abc 1.5 None; do
    one_warning "TENON_PROFILE_LIMIT: .*got '?$TENON_PROFILE_LIMIT.*; expected an integer"
done
TENON_PROFILE_LIMIT=99999999999999999999
TENON_PROFILE_SHAPES=True # known, although the value before is wrong
export TENON_PROFILE_SHAPES
one_warning "TENON_PROFILE_LIMIT=$TENON_PROFILE_LIMIT: .*does not fit 64 bits; expected"
unset TENON_PROFILE_LIMIT
TENON_PROFILE_SHAPES=maybe
one_warning "TENON_PROFILE_SHAPES: .*got 'maybe'.*; expected True or False"
unset TENON_PROFILE_SHAPES
# no profiler: a warning, and the program runs on
TENON_PLUGINS='*,!profile'
export TENON_PLUGINS
check 0 'warning: .*TENON_PROFILE is set, but no plugin provides a profiler' \
    bench "$net" --input 8,64 --repeat 3
unset TENON_PROFILE TENON_PLUGINS
exit $bad
