#!/bin/sh
# SPDX-License-Identifier: MIT
#
# tenon report: the best values, the settings that differ and the page of several runs, which are
# only read; what is refused.
. "${abs_srcdir:-$srcdir}/tests/tools/commands.sh"
TENON_NUM_THREADS=1
TENON_PLUGINS='!backend-opencl,!backend-cuda,!foreign,!models,!passes,!profile,!prune'
export TENON_NUM_THREADS TENON_PLUGINS
awk 'BEGIN { for (i = 0; i < 12; i++) print i % 5 "," i % 4 "," i % 3 }' >train.csv
mkdir -p 'a <b>&"' other
# run FOLDER ARGUMENT...
run() {
    folder=$1
    shift
    check 0 '' train 'Linear(2, 3)' --data "CSV('train.csv')" --batch-size 4 --out "$folder" "$@"
}
run one --epochs 3 --val "CSV('train.csv')" --optim 'Adam(lr=0.1)'
run 'a <b>&"/two' --epochs 2 --optim 'SGD(lr=0.01)' --clip-norm 1
run other/one --epochs 2 --val "CSV('train.csv')" --optim 'Adam(lr=0.1)'
find one a* other -type f -exec cksum {} + | sort >before

# ---- the answer: numbers of metrics.csv ----
check 0 '^report: comparison\.html$' report one 'a <b>&"/two' other/one/
also '^RUN +EPOCHS +STEPS +LOSS +VAL_LOSS +VAL_ACCURACY +VAL_F1 +VAL_AUC$' \
    '^two +2 +6 +[0-9.]+ \* +- +- +- +-$' '^one \(2\) +2 +6 ' '^one +3 +9 .*\*' \
    '^optim +one +Adam\(lr=0\.1\)$' '^ +two +SGD\(lr=0\.01\)$' '^clip-norm +one +-$' \
    '^epochs +one +3$' '^val +one +CSV' '^\*: the best of all runs$'
grep -Eq '^(seed|data|batch-size) ' out && complain 'settings that do not differ'
cp comparison.html page
check 0 '' report one other/one --json --out json.html
cp out json
"$PERL" -MJSON::PP -we 'local $/; my $j = decode_json(<STDIN>);
    my @runs = @{$j->{runs}};
    die "runs" if @runs != 2 || $runs[1]{name} ne "one (2)" || $runs[1]{folder} ne "other/one";
    my ($names) = grep { $_ } join ",", sort keys %{$runs[0]{settings}};
    die "settings: $names" if $names ne "epochs" || $runs[0]{settings}{epochs} ne "3";
    for my $run (@runs) {
        open my $csv, "<", "$run->{folder}/metrics.csv" or die;
        my ($head, @lines) = split /\n/, <$csv>;
        my @names = split /,/, $head;
        my %of;
        for (@lines) {
            my @fields = split /,/;
            my %row = map { $names[$_] => $fields[$_] } grep { ($fields[$_] // "") ne "" }
                0 .. $#names;
            die "steps" if $_ eq $lines[-1] && $run->{steps} != $row{step};
            push @{$of{$_}}, [$row{$_}, $row{epoch} // 0] for keys %row;
        }
        for (["loss", "loss/train", 1], ["val_loss", "loss/validation", 1],
             ["val_accuracy", "accuracy/validation", -1], ["val_f1", "f1/validation", -1]) {
            my ($key, $scalar, $sign) = @$_;
            my ($best) = sort { $sign * ($a->[0] <=> $b->[0]) } @{$of{$scalar}};
            die "$key of $run->{name}" if $run->{best}{$key}{value} != $best->[0] ||
                $run->{best}{$key}{epoch} != $best->[1];
        }
    }
    die "report" if $j->{report} ne "json.html"' <json || complain 'the numbers of --json'
find one a* other -type f -exec cksum {} + | sort | cmp - before || complain 'a run was changed'

cp -r one same
check 0 '^the settings do not differ$' report one same

# ---- the page: one h1, a chart of each scalar with a curve of each run, in its color ----
"$PERL" -0777 -MJSON::PP -we '$_ = <STDIN>;
    my @h1 = m{<h1>(.*?)</h1>}g;
    die "h1: @h1" if "@h1" ne "Comparison of one, two and one (2)";
    die "title" if !m{<title>Comparison of one, two and one \(2\)</title>};
    my ($data) = m{<script type="application/json" id="data">(.*?)</script>}s;
    my @charts = map { join ",", map { "$_->{name}:$_->{color}" } @{$_->{series}} }
        @{decode_json($data)};
    my @titles = m{<h3>(.*?)</h3>}g;
    die "charts: @charts" if @charts != @titles;
    my %of = map { $titles[$_] => $charts[$_] } 0 .. $#charts;
    die "validated first: $titles[0]" if $titles[0] ne "Validation loss";
    die "validation: $of{$titles[0]}" if $of{"Validation loss"} ne "one:0,one (2):2";
    die "train" if $of{"Train loss"} ne "one:0,two:1,one (2):2";
    die "steps" if $of{"Step loss"} ne "one:0,two:1,one (2):2" || !$of{"Learning rate"};
    my ($legend) = m{<h3>Validation loss</h3><ul class="legend">(.*?)</ul>};
    die "legend $legend" if $legend !~ /class="s0"><i><\/i>one <b>[\d.]+<\/b>.*class="s2"><i>/;
    my $curves = () = m{<path class="line"}g;
    die "curves $curves" if $curves < 2 + 3 * 3;
    my ($runs) = m{<section id="runs".*?</section>}sg;
    die "folder" if index($&, "a &lt;b&gt;&amp;&quot;/two") < 0 || $& =~ /<b>&/;
    die "best" if $& !~ m{<td><b>[\d.]+</b> <small>epoch 3</small></td>};
    my ($settings) = m{(<section id="settings".*?</section>)}s;
    my @rows = $settings =~ m{<th scope="row">(.*?)</th>}g;
    die "settings @rows" if "@rows" ne "val optim epochs clip-norm";
    die "values" if index($settings,
        "<td>Adam(lr=0.1)</td><td>SGD(lr=0.01)</td><td>Adam(lr=0.1)</td>") < 0;
    # every element ends where it should, and nothing is loaded
    my @open;
    s{<(script|style)\b[^>]*>.*?</\1>}{}sg;
    for (m{<(/?[a-z][a-z0-9]*\b[^>]*)>}g) {
        my ($close, $name) = m{^(/?)(\w+)};
        next if m{/$} || $name =~ /^(meta|link|input|img)$/;
        die "</$name> after <@{[$open[-1] // q()]}>" if $close && (pop @open // "") ne $name;
        push @open, $name if !$close;
    }
    die "open: @open" if @open;
    die "loads" if m{\b(?:src|href)="(?!#|data:)}' <page || complain 'the page'

# ---- runs that go on, and runs without checkpoints ----
cp -r one going
printf '10,0.1' >>going/metrics.csv
rm -rf going/checkpoints
check 0 '^the settings of going are not known' report one going
also '^going +3 +9 '
grep -q 'settings do not differ' out comparison.html && complain 'settings that are not known'
grep -q 'The settings of going are not known' comparison.html || complain 'the page does not say so'

# ---- what is refused ----
cp comparison.html kept
refuse() { # CODE PATTERN ARGUMENT...
    wanted=$1 pattern=$2
    shift 2
    check "$wanted" "$pattern" report "$@"
    cmp comparison.html kept || complain 'the page was changed'
}
refuse 2 'too few arguments; expected RUN RUN' one
refuse 2 'too many arguments' 1 2 3 4 5 6 7
refuse 1 '"nothing/metrics.csv": it is missing or empty; expected the folder of a run' one nothing
refuse 1 'other.metrics.csv": it is missing or empty' one other
test ! -e nothing || complain 'a folder was made'
cp -r one bad
for text in 'step,loss\n1,x\n' 'step,loss\n2,1\n1,1\n' 'epoch\n1\n' 'step,loss\n1,1,1\n' 'step' \
    'step,a\0\n'; do
    printf "$text" >bad/metrics.csv
    refuse 1 '^tenon: report: "bad/metrics.csv": line [123]: ' one bad
done
echo mine >notes.html
refuse 1 '^tenon: --out: notes.html is there and no comparison' one other/one --out notes.html
test "$(cat notes.html)" = mine || complain 'another file was replaced'
refuse 1 'no/folder' one other/one --out no/folder/x.html
exit $bad
