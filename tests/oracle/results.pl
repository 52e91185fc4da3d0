#!/usr/bin/perl
# SPDX-License-Identifier: MIT
#
# Prints docs/reference/operator-results.md: the dtype and shape of the results of each operator, as
# they are in the recorded cases. Every statement holds in all cases of the operator, and dtypes are
# stated only if the first input has at least two dtypes in its cases.
#   results.pl OPERATORS.json CASES.txt... >PAGE
# tests/house/operator_results.sh compares the page with what this prints.
use strict;
use warnings;
use JSON::PP;

my %LONG = (f16 => 'float16', bf16 => 'bfloat16', f32 => 'float32', f64 => 'float64',
    c64 => 'complex64', c128 => 'complex128', i8 => 'int8', i16 => 'int16', i32 => 'int32',
    i64 => 'int64', u8 => 'uint8', bool => 'bool');
my $default = 'f32';

sub read_all
{
    my ($path) = @_;
    open my $file, '<:encoding(UTF-8)', $path or die "$path: $!\n";
    local $/;
    return scalar <$file>;
}

# ---- the cases -------------------------------------------------------------------------------

# Returns the cases of all files: { op, in => [[dtype, shape]...], out => [...], opt => {} }.
# The shape is text, such as "2,3"; "-" has no dimensions. An absent input is undef.
sub cases_of
{
    my (@cases, $case);
    for my $path (@_) {
        for my $line (split /\n/, read_all($path)) {
            if ($line =~ /^case /) {
                push @cases, $case = { in => [], out => [], opt => {}, refused => 0 };
            } elsif (!defined $case) {
                next;
            } elsif ($line =~ /^op (\S+)/) {
                $case->{op} = $1;
            } elsif ($line =~ /^opt (\S+) ?(.*)/) {
                $case->{opt}{$1} = $2;
            } elsif ($line =~ /^in none/) {
                push @{ $case->{in} }, undef;
            } elsif ($line =~ /^(in|out) (\S+) (\S+)/) {
                push @{ $case->{$1} }, [ $2, $3 ];
            } elsif ($line =~ /^refused/) {
                $case->{refused} = 1;
            }
        }
    }
    return grep { defined $_->{op} && !$_->{refused} && @{ $_->{out} } } @cases;
}

# The inputs of a case that are there, as [name, dtype, shape, flags].
sub inputs_of
{
    my ($op, $case) = @_;
    my @names = @{ $op->{inputs} };
    my @inputs;
    for my $i (0 .. $#{ $case->{in} }) {
        my $operand = $names[ $i < @names ? $i : -1 ] or next;
        my $in = $case->{in}[$i] or next;
        push @inputs, [ $operand->{name}, @$in, { map { $_ => 1 } @{ $operand->{flags} } } ];
    }
    return @inputs;
}

# ---- dtypes ----------------------------------------------------------------------------------

my %CLASS = ((map { $_ => 2 } qw(f16 bf16 f32 f64)), (map { $_ => 3 } qw(c64 c128)), bool => 0);
my %PARTS = (c64 => 'f32', c128 => 'f64');
my @WIDTH = qw(bool u8 i8 i16 i32 i64 f16 bf16 f32 f64 c64 c128);
my %PLACE = map { $WIDTH[$_] => $_ } 0 .. $#WIDTH;

sub class { return $CLASS{ $_[0] } // 1; }

sub promote_two
{
    my ($a, $b) = @_;
    return $a if $a eq $b;
    ($a, $b) = ($b, $a) if class($a) < class($b)
        || (class($a) == class($b) && $PLACE{$a} < $PLACE{$b});
    if (class($a) == 3) {
        return 'c128' if $b eq 'f64' || $b eq 'c128' || $a eq 'c128';
        return 'c64';
    }
    return $a if class($a) > class($b);
    return 'f32' if class($a) == 2 && "$b $a" =~ /^f16 bf16$/;
    return 'i16' if "$b $a" eq 'u8 i8';
    return $a;
}

# The common dtype: that of the highest class (bool, integer, float, complex). Tensors without
# dimensions count only if no other tensor has their class or a higher one.
sub common
{
    my @in = grep { !$_->[3]{nopromote} } @_;
    my ($with, $without);
    for my $in (@in) {
        my $which = $in->[2] eq '-' ? \$without : \$with;
        $$which = defined $$which ? promote_two($$which, $in->[1]) : $in->[1];
    }
    return $without if !defined $with;
    return $with if !defined $without || class($without) <= class($with);
    return class($without) == 3 && class($with) == 2
        ? ($with eq 'f64' ? 'c128' : 'c64') : $without;
}

# Returns the rules that may describe a dtype: [text, function(inputs) -> dtype or undef].
sub dtype_rules
{
    my ($op) = @_;
    my %flags = map { $_ => 1 } @{ $op->{flags} };
    my $floats = [ 'the common one; float32 for bool and integers',
        sub { my $d = common(@_); return defined $d && class($d) < 2 ? $default : $d; } ];
    my @rules;

    # the flags of an operator that promotes its inputs say the rule
    return $floats if $flags{promote_float} && @{ $op->{inputs} } > 1;
    return ([ 'the common one', \&common ], $floats) if $flags{promote};
    for my $operand (@{ $op->{inputs} }) {
        my $name = $operand->{name};
        next if grep { $_ eq 'list' } @{ $operand->{flags} };
        my $of = sub { my ($in) = grep { $_->[0] eq $name } @_; return $in ? $in->[1] : undef; };
        push @rules, [ "that of `$name`", $of ];
        push @rules, [ "that of `$name`; int64 for bool and integers",
            sub { my $d = $of->(@_); return defined $d && class($d) < 2 ? 'i64' : $d; } ];
        push @rules, [ "that of `$name`; float32 for bool and integers",
            sub { my $d = $of->(@_); return defined $d && class($d) < 2 ? $default : $d; } ];
        push @rules, [ "that of `$name`; of a complex `$name` that of its parts",
            sub { my $d = $of->(@_); return defined $d ? $PARTS{$d} // $d : undef; } ];
    }
    return @rules;
}

sub dtype_text
{
    my ($op, $cases, $at) = @_;
    my ($names) = grep { $_->{name} eq 'dtype' } @{ $op->{options} };
    my $suffix = '';
    my (%seen, %inputs);
    my @used;
    for my $case (@$cases) {
        my $option = $case->{opt}{dtype};
        if ($names && defined $option && $option ne 'None') {
            return 'varies' if $case->{out}[$at][0] ne $option;
            $suffix = '; the option `dtype`, if given';
            next;
        }
        push @used, $case;
        $seen{ $case->{out}[$at][0] } = 1;
        my ($first) = inputs_of($op, $case);
        $inputs{ $first->[1] } = 1 if $first;
    }
    return 'the option `dtype`' if !@used;
    return 'varies' if !@{ $op->{inputs} };
    return 'one case dtype' if keys %inputs < 2;
    return "$LONG{ (keys %seen)[0] }$suffix" if keys %seen == 1;
    for my $rule (dtype_rules($op)) {
        my $fits = 1;
        for my $case (@used) {
            my $dtype = $rule->[1]->(inputs_of($op, $case));
            $fits &&= defined $dtype && $dtype eq $case->{out}[$at][0];
            last if !$fits;
        }
        return "$rule->[0]$suffix" if $fits;
    }
    return 'varies';
}

# ---- shapes ----------------------------------------------------------------------------------

sub broadcast
{
    my @out;
    for my $in (@_) {
        my @sizes = $in->[2] eq '-' ? () : reverse split /,/, $in->[2];
        for my $d (0 .. $#sizes) {
            if (!defined $out[$d] || $out[$d] == 1) {
                $out[$d] = $sizes[$d];
            } elsif ($sizes[$d] != 1 && $sizes[$d] != $out[$d]) {
                return undef;
            }
        }
    }
    return @out ? join(',', reverse @out) : '-';
}

sub shape_text
{
    my ($op, $cases, $at) = @_;
    my %shapes = map { $_->{out}[$at][1] => 1 } @$cases;
    return 'no dimensions' if keys %shapes == 1 && (keys %shapes)[0] eq '-';
    return 'varies' if keys %shapes < 2;
    my ($first, @others) = @{ $op->{inputs} };
    return 'varies' if !$first || grep { $_ eq 'list' } @{ $first->{flags} };
    if (!@others || !grep { $_ eq 'pointwise' } @{ $op->{flags} }) {
        my $fits = 1;
        for my $case (@$cases) {
            my ($in) = grep { $_->[0] eq $first->{name} } inputs_of($op, $case);
            $fits &&= $in && $in->[2] eq $case->{out}[$at][1];
        }
        return "that of `$first->{name}`" if $fits;
    }
    for my $case (@$cases) {
        my $shape = broadcast(inputs_of($op, $case));
        return 'varies' if !defined $shape || $shape ne $case->{out}[$at][1];
    }
    return 'the inputs, broadcast';
}

# ---- the page --------------------------------------------------------------------------------

my ($json, @files) = @ARGV;
my $operators = decode_json(do { local $/; open my $f, '<', $json or die "$json: $!\n"; <$f> });
my %cases;
push @{ $cases{ $_->{op} } }, $_ for cases_of(@files);

print <<'END';
# Results of operators

The dtype and the shape of the results, by operator ([operators.md](operators.md) explains what each
computes). `tests/oracle/results.pl` finds them in the recorded cases, with which Tenon is compared
on every device: each statement holds in all cases of the operator, whose number is in the last
column. `varies`: no short rule holds in all cases; it may depend on options, for example.
`one case dtype`: the first input has only one dtype in the cases, so nothing is said. The operators
without recorded results are at the end of the page.

"The common one" is the dtype of the highest class (bool, integer, float, complex) among the inputs;
among dtypes of one class it is the widest, and float32 for float16 with bfloat16. A tensor without
dimensions counts only if its class is higher than that of all tensors with dimensions. Where
float32 is written for bool and integers, it is the default dtype (`tn_default_dtype`).

| operator | result | dtype | shape | cases |
|---|---|---|---|---|
END
my @without;
for my $op (sort { $a->{name} cmp $b->{name} } @{ $operators->{operators} }) {
    my $all = $cases{ $op->{name} };
    if (!$all || !@{ $op->{outputs} }) {
        push @without, "`$op->{name}`";
        next;
    }
    for my $at (0 .. $#{ $op->{outputs} }) {
        my @with = grep { defined $_->{out}[$at] } @$all;
        next if !@with;
        printf "| `%s` | %s | %s | %s | %d |\n", $op->{name}, $op->{outputs}[$at],
            dtype_text($op, \@with, $at), shape_text($op, \@with, $at), scalar @with;
    }
}

# The names, in lines of at most 100 columns.
my ($text, $line) = ('', 'Operators without recorded results, or without results (random numbers, steps of optimizers):');
for my $name (@without) {
    my $item = ' ' . $name . ($name eq $without[-1] ? '.' : ',');
    if (length($line . $item) > 100) {
        $text .= "$line\n";
        $line = '';
        $item =~ s/^ //;
    }
    $line .= $item;
}
print "\n$text$line\n";
