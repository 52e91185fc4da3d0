#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The target of every relative link of a page, and every page of docs/ that a source names, exists,
# or is one of the two generated pages.
cd "$abs_srcdir" || exit 99
${PERL-perl} - <<'END'
use strict;
use warnings;
use File::Basename;
use File::Find;

my %generated = map { $_ => 1 } qw(docs/reference/operators.md docs/reference/api.md);
my @places = qw(README.md CONTRIBUTING.md NEWS.md docs bench core lib plugins sdk tools examples
                tests/house tests/oracle tests/spec tests/mutate tests/conform);
my $bad = 0;
my $links = 0;

sub check {
    my ($file, $line, $target) = @_;
    1 while $target =~ s{(^|/)\./}{$1} || $target =~ s{(^|/)(?!\.\./)[^/]+/\.\./}{$1};
    $links++;
    return if -e $target || $generated{$target};
    print "$file:$line: $target does not exist\n";
    $bad = 1;
}

sub visit {
    my $file = $File::Find::name;
    return unless -f $file && $file =~ /\.(?:[ch1-9]|md|pl|sh|mk|py|txt|ops|cl|cu)$/;
    my $folder = dirname($file) eq '.' ? '' : dirname($file) . '/';
    open my $in, '<', $file or die "$file: $!\n";
    while (<$in>) {
        check($file, $., $1) while m{(?<![\w/.])(docs/[a-z/-]+\.md)}g;
        next unless $file =~ /\.md$/;
        check($file, $., "$folder$1") while m{\]\((?!\w+:)([^)\s#]+)(?:#[^)]*)?\)}g;
    }
}

find({ no_chdir => 1, wanted => \&visit }, grep { -e } @places);
print "links: $links\n";
exit($bad || $links < 40);
END
