#!/usr/bin/env perl
# SPDX-License-Identifier: MIT
#
# names.pl SRCDIR: rule 7 of CONTRIBUTING.md. A function that other files use is named after its
# file or its folder: tn__stream_open or tn__streams_first in stream.c, tn__grad_add in a file of
# core/grad, pickle_skip in pickle_values.c. Functions whose names macros make are not checked.
use strict;
use warnings;

my ($srcdir) = @ARGV;
my ($functions, $bad) = (0, 0);

# Returns the words with which the names of functions of a file may begin.
sub beginnings {
    my ($folders, $file) = @_;
    my @words = split /_/, $file;
    my @all = map { join '_', @words[0 .. $_] } 0 .. $#words;
    push @all, map { /^(?:backend|kernels)-(.*)/ ? ($1, 'gpu') : $_ } @$folders;
    return map { my $plain = s/s$//r; ($plain, "${plain}s") } @all;
}

my @files = map { glob "$srcdir/$_" }
    qw(core/*/*.c lib/*/*.c plugins/*/*.c plugins/*/*/*.c sdk/conform/*.c);
for my $path (sort @files) {
    my ($folders, $file) = $path =~ m{^\Q$srcdir\E/(.*)/([^/]+)\.c$};
    open my $in, '<', $path or die "$path: $!\n";
    my $text = do { local $/; <$in> };
    $text =~ s{/\*.*?\*/}{}gs;
    my %begins = map { $_ => 1 } beginnings([ split m{/}, $folders ], $file);
    while ($text =~ m{^((?:[A-Za-z_]\w*[\s*]+)+)(\w+)\([^;{}]*\)\n\{}mg) {
        my ($type, $name) = ($1, $2);
        next if $type =~ /\b(?:static|TN__\w+|return|else)\b/ || $name =~ /^tn_[a-z]/;
        next if $name =~ /^[A-Z]/;
        $functions++;
        (my $bare = $name) =~ s/^tn__//;
        my @words = split /_/, $bare;
        next if grep { $begins{ join '_', @words[0 .. $_] } } 0 .. $#words;
        print "$folders/$file.c: $name: it begins with neither the file's name nor the folder's\n";
        $bad = 1;
    }
}
print "$functions functions\n";
exit $bad;
