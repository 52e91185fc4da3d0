#!/usr/bin/env perl
# SPDX-License-Identifier: MIT
#
# messages.pl SRCDIR: error messages have the pattern of docs/guides/errors.md, as far as a script
# can tell. It reads the texts in calls of tn_fail and of functions like it, whose names contain one
# of the words below. What it checks:
#   - a NULL pointer is refused by the name of one argument: not "module or name", not a count;
#   - "out of range" has the value that came and, after "expected", the range;
#   - "wrong type", "wrong kind", "wrong dtype" and "unknown" have what came and what is expected;
#   - "too large", "wrong number" and the like have a number, or say what is expected;
#   - a message with "got" has "expected", and says before "got" what is wrong.
# The lines after __DATA__ are parts of messages that are exempt, with the reason.
use strict;
use warnings;

my ($srcdir) = @ARGV;
my $calls = qr/\b\w*(?:fail|refuse|wrong|bad|null_input|null_of|not_null|given|error_index)\w*\(/;
my ($count, $bad) = (0, 0);
my @exempt = grep { length } map { s/\s*#.*//rs } <DATA>;

# Returns the text from the parenthesis at $at to the one that closes it.
sub arguments {
    my ($text, $at) = @_;
    my $depth = 0;
    pos($$text) = $at;
    while ($$text =~ /\G(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)'|([()])|[^()"']+)/gcs) {
        $depth += $1 eq '(' ? 1 : -1 if defined $1;
        return substr $$text, $at, pos($$text) - $at if $depth == 0;
    }
    return '';
}

sub problem {
    my ($name, $m) = @_;
    my ($got, $expected) = ($m =~ /\bgot\b/, $m =~ /expected|must be|should be/);
    return 'a NULL pointer without the name of one argument'
        if ($name =~ /null_input|not_null|given|refuse_null/ && $m =~ / or \w+$/) ||
        ($m =~ /it is NULL/ && $m !~ /[\w\]]: it is NULL|%s: it is NULL/) ||
        $m =~ / or \w+: it is NULL|%u \w+: it is NULL/;
    return 'no value, or no range after "expected"'
        if $m =~ /out of range(?:[,;:]|$)/ && !($got && $expected && $m !~ /expected less than %/);
    return 'what came or what is expected is missing'
        if $m =~ /wrong (?:type|kind|dtype)\b|(?<!is )\bunknown\b/ && !($got && $expected);
    return 'neither a number nor what is expected'
        if $m =~ /\btoo (?:large|small|many|few|long|short)\b|wrong (?:number|count|size)/ &&
        $m !~ /%\w|\d|expected/;
    return '"got" without what is wrong' if $m =~ /: got %/;
    return '"got" without "expected"' if $m =~ /, got %/ && !$expected && $m !~ /[:;] .*[:;] /;
    return undef;
}

for my $path (sort map { glob "$srcdir/$_" } map { ("$_/*.c", "$_/*.h") }
    qw(core/* lib/* plugins/* plugins/*/* sdk/conform sdk/include/tenon tools tools/* examples/*)) {
    open my $in, '<', $path or die "$path: $!\n";
    my $text = do { local $/; <$in> };
    next if $text =~ m{Generated .*by sdk/(?:operators|api)/generate\.pl}; # in a distribution
    $text =~ s{(/\*.*?\*/)}{$1 =~ s/[^\n]/ /gr}gse;
    while ($text =~ /($calls)/g) {
        my ($name, $at) = ($1, pos $text);
        my $call = arguments(\$text, $at - 1);
        pos($text) = $at;
        (my $joined = $call) =~ s/"\s*"//g;
        # The format, and texts among its arguments.
        my $message = join ' ', $joined =~ /"((?:[^"\\]|\\.)*)"/g;
        next if $message eq '';
        $count++;
        my $why = problem($name, $message) or next;
        next if grep { index($message, $_) >= 0 } @exempt;
        my $line = 1 + (substr($text, 0, $at) =~ tr/\n//);
        print substr($path, 1 + length $srcdir), ":$line: $why: $message\n";
        $bad++;
    }
}
print "$count messages, $bad to mend\n";
exit($bad || $count < 2500 ? 1 : 0);
__DATA__
out of range, got %lld; there is none # tn__error_index, of an empty list
the tensor has no dimensions # of a tensor without dimensions every dim is out of range
index %lld is out of range: this %s # PyTorch's wording
Index out of range: %lld; this %s # PyTorch's wording
Factor should be < 1.0 # PyTorch's wording
it is NULL, which the header does not allow # after the argument
it is NULL, but its number of elements is not 0 # after the argument
string: unknown escape # the text and the column come before it
unknown conversion # the format comes before it
result %lld: wrong dtype or shape, got %s # the argument has what is expected
%s: wrong shape, got %s # the argument has what is expected
wrong dtype or shape, got %s, which %s relied on # the argument has what is expected
unknown kind of value # an argument of the function has the parts
unknown tensor # an argument of the function has the parts
unknown or complex dtype # the line of the file comes before it
column %lld: got %q; expected # of a text, by its place
argument %q: unknown name; # the name is what came
unknown setting %q # "did you mean"
unknown name, got %q; did you mean # the nearest name is what is expected
which the operators and tensors make # the line of the text is what came
unknown name; expected one that tenon check # the name comes before it
after refused case %s: wrong sum of # both numbers are there
report: a format is wrong # a defect of this program
