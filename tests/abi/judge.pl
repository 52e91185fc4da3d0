#!/usr/bin/perl
# SPDX-License-Identifier: MIT
#
# Reads a report of `abidiff --leaf-changes-only` from standard input. The arguments are names of
# structs, to whose end members may have been added. Every other change is printed, and makes the
# exit status 1.
use strict;
use warnings;

my %growing = map { $_ => 1 } @ARGV;
my ($name, $size, @wrong);
my $where = sub { return defined $name ? "$name: " : '' };
while (my $line = <STDIN>) {
    chomp $line;
    next if $line =~ /^\s*$/ || $line =~ /summary:/;
    if ($line =~ /^'struct (\w+) at \S+' changed:$/) {
        ($name, $size) = ($1, undef);
        push @wrong, "$name may not change" unless $growing{$name};
    } elsif (defined $name && $line =~ /^  type size changed from (\d+) to (\d+) /) {
        $size = $1;
        push @wrong, "$name shrinks" if $2 < $1;
    } elsif (defined $name && $line =~ /^  \d+ data member insertions?:$/) {
        next;
    } elsif (defined $size && $line =~ /^    '.*', at offset (\d+) \(in bits\)/) {
        push @wrong, "$name: a member in the middle:$line" if $1 < $size;
    } else {
        push @wrong, $where->() . $line;
    }
}
print "$_\n" for @wrong;
exit(@wrong ? 1 : 0);
