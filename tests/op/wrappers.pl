#!/usr/bin/perl
# SPDX-License-Identifier: MIT
#
# Writes calls of all wrappers of <tenon/ops.h>, each with NULL for one of its pointers, for
# test_wrappers.c: perl wrappers.pl OPS_H OUT
use strict;
use warnings;

my ($from, $to) = @ARGV;
die "usage: wrappers.pl OPS_H OUT\n" unless defined $to;
open my $in, '<:encoding(UTF-8)', $from or die "$from: $!\n";
my $text = do { local $/; <$in> };

# What is given for a parameter of each type, and in its place NULL.
my %value = (
    'tn_tensor *' => [ 'x', 'NULL' ], 'tn_tensor *const *' => [ 'list', 'NULL' ],
    'tn_tensor **' => [ '&out', 'NULL' ], 'const char *' => [ '"mean"', 'NULL' ],
    'tn_ints ' => [ '((tn_ints){ one, 1 })', '((tn_ints){ NULL, 1 })' ],
    'tn_floats ' => [ '((tn_floats){ half, 1 })', '((tn_floats){ NULL, 1 })' ],
    'int64_t ' => ['1'], 'double ' => ['0.5'], 'bool ' => ['false'], 'tn_dtype ' => ['TN_F32'],
    'tn_scalar ' => ['tn_scalar_int(1)'],
);
my ($calls, @names, $out) = (0);
$out = "/* Written by wrappers.pl. */\n";
while ($text =~ /^TN_OPS_INLINE (tn_status |tn_tensor \*)(tn_\w+)\(([^{]*)\)\n\{/mg) {
    my ($returns, $name, $list) = ($1, $2, $3);
    next if $name =~ /^tn_ops_/;
    $list =~ s/\s+/ /g;
    $list =~ s/ TN_OPS_ELSE(\((?:[^()]|(?1))*\))//g;
    my (@types, @parameters);
    for my $parameter ($list eq 'void' ? () : split /, /, $list) {
        my ($type, $word) = $parameter =~ /^(.*[ *])(\w+)$/;
        die "$name: unknown parameter \"$parameter\"\n" unless defined $type && $value{$type};
        push @types, $type;
        push @parameters, $word;
    }
    push @names, $name;
    $out .= "static void call_$name(void)\n{\n";
    for my $null (0 .. $#types) {
        next unless $value{ $types[$null] }[1];
        my @given = map { $value{ $types[$_] }[$_ == $null ? 1 : 0] } 0 .. $#types;
        my $call = "($name)(" . join(', ', @given) . ')';
        my $fails = $returns eq 'tn_status ' ? "$call != TN_OK" : "$call == NULL";
        my $may = $types[$null] eq 'const char *' ? 'true' : 'false';
        $out .= "    begin();\n    expect($fails, $may,\n           \"$name: $parameters[$null]\");\n";
        $calls++;
    }
    $out .= "}\n";
}
die "$from: only $calls calls of " . @names . " wrappers\n" if $calls < 1000 || @names < 500;
$out .= "static void (*const every_wrapper[])(void) = {\n"
    . join('', map { "    call_$_,\n" } @names) . "};\n";
open my $file, '>', $to or die "$to: $!\n";
print $file $out;
close $file or die "$to: $!\n";
