#!/usr/bin/env perl
# SPDX-License-Identifier: MIT
#
# macros.pl SRCDIR: the body of a macro has at most 10 lines, so that code can be stepped through and
# found by its name; longer pieces are functions, templates or data. Rows that several option tables
# share may be longer. So may TN_PLUGIN, which defines the descriptor of a plugin. Generated files,
# which are in the folders of a distribution, are not checked.
use strict;
use warnings;

my ($srcdir) = @ARGV;
my ($count, $bad) = (0, 0);
my @files = map { glob "$srcdir/$_" } map { ("$_/*.c", "$_/*.h", "$_/*.cl", "$_/*.cu", "$_/*.cuh") }
    qw(core/* lib/* plugins/* plugins/*/* plugins/*/*/* sdk/* sdk/*/* tools tools/* tests tests/* bench
    examples examples/*);
for my $path (@files) {
    open my $in, '<', $path or die "$path: $!\n";
    my $text = do { local $/; <$in> };
    next if $text =~ m{Generated .*by sdk/(?:operators|api)/generate\.pl};
    while ($text =~ /^[ \t]*#[ \t]*define[ \t]+(\w+)((?:[^\n]*\\\n)*[^\n]*)/mg) {
        my ($name, $body, $at) = ($1, $2, $-[0]);
        my $lines = $body =~ tr/\n//;
        $count++;
        next if $lines <= 10 || $name eq 'TN_PLUGIN';
        next if $body =~ /\bTN_OPTION_/ && $body !~ /;\s*\\/;
        my $line = 1 + (substr($text, 0, $at) =~ tr/\n//);
        print substr($path, 1 + length $srcdir), ":$line: the body of $name has $lines lines\n";
        $bad++;
    }
}
print "$count macros\n";
exit($bad || $count < 1000 ? 1 : 0);
