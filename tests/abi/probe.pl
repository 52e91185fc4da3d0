#!/usr/bin/perl
# SPDX-License-Identifier: MIT
#
# Prints a C file that has a variable for every public struct, every table of functions and every
# function of the headers below FOLDER. A library made from it has debug information for the whole
# ABI, which abidiff compares with that of another library.
#   perl probe.pl FOLDER plugin|program
#   perl probe.pl FOLDER growing        the names of structs that may grow at their end
use strict;
use warnings;

my ($folder, $view) = @ARGV;
my (%struct, @tables, @headers);
for my $path (sort glob "$folder/sdk/include/tenon/*.h") {
    open my $in, '<', $path or die "$path: $!\n";
    my $text = do { local $/; <$in> };
    next if $path =~ m{/ops\.h$};
    while ($text =~ /^typedef struct \w*\s*\{(.*?)^\} (tn_\w+);/msg) {
        my ($members, $name) = ($1, $2);
        $struct{$name} = $members =~ /^\s*tn_head head;/ ? 1 : 0;
    }
    push @headers, $path =~ m{([^/]+)$} unless $path =~ m{/tenon\.h$};
    push @tables, $text =~ /^struct (tn_\w+_table) \{/mg;
}
die "no structs below $folder\n" unless %struct;
delete $struct{tn_head};

if ($view eq 'growing') {
    print "$_\n" for (sort grep { $struct{$_} } keys %struct), sort @tables;
} elsif ($view eq 'plugin') {
    print "#include <tenon/plugin.h>\n", map { "#include <tenon/$_>\n" } @headers;
    print "struct tn_host_links tn_host_links;\n";
    print "TN_ATTR(visibility(\"default\")) $_ *abi_$_;\n" for sort keys %struct;
    print "TN_ATTR(visibility(\"default\")) struct $_ *abi_$_;\n" for sort @tables;
} else {
    open my $in, '<', "$folder/lib/libtenon.sym" or die "$folder/lib/libtenon.sym: $!\n";
    print "#include <tenon/tenon.h>\n";
    while (my $name = <$in>) {
        chomp $name;
        print "__typeof__($name) *abi_$name;\n";
    }
}
