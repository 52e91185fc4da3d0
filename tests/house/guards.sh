#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The include guard of a header is named after the path of the header: TN_ and the path in capitals,
# without a leading "plugins/" or "sdk/". Public headers: TENON_NAME_H. Examples: the path below
# examples/. A header without a guard must define nothing that a second #include would repeat, or is
# meant to be included several times (templates, lists).
cd "$abs_srcdir" || exit 99
find bench core examples lib plugins sdk tests tools -name '*.h' -type f | LC_ALL=C sort |
    "${PERL:-perl}" -ne '
chomp;
my $path = $_;
open my $file, "<", $path or die "$path: $!\n";
my $text = do { local $/; <$file> };
my $comments = qr{(?:/\*(?:(?!\*/).)*\*/|\s)*}s;
my ($guard, $rest) = $text =~ m{\A$comments#ifndef (\w+)\n#define \1\n(.*)\z}s or next;
$rest =~ /#endif[^\n]*\s*\z/ or next;
my $name = $path;
my $prefix = $name =~ s{^sdk/include/tenon/}{} ? "TENON_" : $name =~ s{^examples/}{} ? "" : "TN_";
$name =~ s{^(?:plugins|sdk)/}{};
$name = uc $name;
$name =~ s/[^A-Z0-9]/_/g;
$guards++;
next if $guard eq "$prefix$name";
print "$path: guard $guard; expected $prefix$name\n";
$wrong++;
END {
    print "found only $guards include guards; expected at least 100\n" if $guards < 100;
    $? = 1 if $wrong || $guards < 100;
}'
