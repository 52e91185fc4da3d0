#!/usr/bin/env perl
# SPDX-License-Identifier: MIT
#
# layout.pl HEADER...: a C program that prints size and member offsets of every struct that the headers define, and the
# value of every enumeration constant.
use strict;
use warnings;

my (@structs, @constants, %seen);
for my $header (@ARGV) {
    open my $in, '<', $header or die "layout.pl: $header: $!\n";
    local $/;
    my $text = <$in>;
    $text =~ s{/\*.*?\*/}{}gs;
    $text =~ s{\\\n}{ }g;
    # removes parts that are only for C++, then all other directives
    $text =~ s{^[ \t]*\#\s*ifdef __cplusplus\b.*?^[ \t]*\#\s*(?:else|endif)\b}{}gms;
    $text =~ s{^[ \t]*\#.*$}{}gm;
    while ($text =~ /\bstruct\s+(tn_\w+)\s*(\{(?:[^{}]|(?2))*\})/g) {
        my ($name, $body) = ($1, substr $2, 1, -1);
        next if $seen{$name}++;
        $body =~ s/\b(?:union|struct)\s*(\{(?:[^{}]|(?1))*\})/nested/g;
        my @members;
        for my $declaration (split /;/, $body) {
            next unless $declaration =~ /\S/;
            if ($declaration =~ /\(\s*\*\s*(\w+)\s*\)\s*\(/) {
                push @members, $1;
                next;
            }
            for my $one (split /,/, $declaration) {
                push @members, $1 if $one =~ /(\w+)\s*(?:\[[^\]]*\]\s*)*$/;
            }
        }
        push @structs, [$name, \@members];
    }
    while ($text =~ /\benum\b[^{;()]*\{([^{}]*)\}/g) {
        for my $one (split /,/, $1) {
            push @constants, $1 if $one =~ /^\s*(TN_\w+)/;
        }
    }
}

print "#include <stdio.h>\n#include <tenon/tenon.h>\n#include <tenon/query.h>\n#include <tenon/native.h>\n",
    "#include <tenon/foreign.h>\n#include <tenon/parallel.h>\n#include <tenon/profile.h>\n#include <tenon/quantize.h>\n\nint main(void)\n{\n";
for my $struct (@structs) {
    my ($name, $members) = @$struct;
    print "    printf(\"struct $name %zu\\n\", sizeof(struct $name));\n";
    print "    printf(\"  $_ %zu %zu\\n\", offsetof(struct $name, $_), sizeof(((struct $name *)0)->$_));\n" for @$members;
}
print "    printf(\"constants\\n\");\n";
print "    printf(\"  $_ %lld\\n\", (long long)$_);\n" for @constants;
print "    return 0;\n}\n";
