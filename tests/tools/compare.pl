#!/usr/bin/env perl
# SPDX-License-Identifier: MIT
#
# compare.pl EXPECTED KEY [PATH]: compares the JSON on standard input (the part PATH of it) with the
# part KEY of the file EXPECTED. All that is expected must be there; numbers may differ by 1e-5.
use strict;
use warnings;
use JSON::PP;

my ($file, $key, $path) = @ARGV;
my $json = JSON::PP->new->utf8->allow_nonref;
local $/;
open my $in, '<', $file or die "$file: $!\n";
my $wanted = $json->decode(<$in>)->{$key};
my $got = $json->decode(<STDIN>);
$got = $got->{$path} if defined $path;

sub compare {
    my ($a, $b, $where) = @_;
    die "$where: missing\n" unless defined $a;
    if (ref $b eq 'HASH') {
        compare($a->{$_}, $b->{$_}, "$where.$_") for sort keys %$b;
    } elsif (ref $b eq 'ARRAY') {
        die "$where: " . @$a . " entries, expected " . @$b . "\n" unless @$a == @$b;
        compare($a->[$_], $b->[$_], "$where\[$_\]") for 0 .. $#$b;
    } elsif ($b =~ /^-?[0-9]/) {
        die "$where: got $a, expected $b\n" unless abs($a - $b) <= 1e-5 * (1 + abs $b);
    } else {
        die "$where: got $a, expected $b\n" unless $a eq $b;
    }
}
compare($got, $wanted, $key);
