#!/usr/bin/env perl
# SPDX-License-Identifier: MIT
#
# folders.pl SRCDIR [BUILDDIR]: checks which folders of core/ and lib/ use which. A folder may include only headers of folders that
# precede it in @order, and core/ no public header of what lib/ implements. With a build folder, the symbols of its objects are checked as well: a folder may use only symbols that
# folders before it define, and the tables of functions that lib/library/upward_calls.c sets. Bounds what lib/ takes from core/ beside
# the public functions, the number of functions in those tables, and the size of both floors.
use strict;
use warnings;

my @order = qw(core/base core/plugin core/tensor core/hook core/op core/grad core/boundary core/module lib/parametrize
    lib/prune lib/train lib/data lib/io lib/graph lib/plan lib/comm lib/library);
my %tables = map { $_ => 1 } qw(tn__base_up tn__plugin_up tn__tensor_up tn__op_up tn__module_up tn__parametrize_up
    tn__kinds tn__runners);
# The most that each number may be: a bound for what comes, which goes down with the numbers. Bytes depend on the compiler: those of gcc
# 12 with -O2 and some room.
my %most = ('lines of core' => 39_850, 'lines of lib' => 33_100, 'bytes of core' => 505_000, 'bytes of lib' => 380_000,
    'internal names that lib takes from core' => 144, 'functions called upwards' => 25);
# The public headers of what lib/ implements, and those that include all.
my %of_lib = map { $_ => 1 } qw(comm compiler contrib data format fuse graph optimizer parametrize plugin prune scaler tenon train);
my ($srcdir, $builddir) = @ARGV;
my %level = map { $order[$_] => $_ } 0 .. $#order;
my $bad = 0;

sub complain {
    print @_, "\n";
    $bad = 1;
}

# ---- includes: between folders, and between the files of one folder ----
my (%edges, %headers, %count, %public);
for my $file (sort map { glob "$srcdir/$_/*/*.[ch]" } qw(core lib)) {
    my ($path, $folder) = $file =~ m{(((?:core|lib)/\w+)/\w+\.[ch])$} or complain "$file: letters, digits and underscores only" and next;
    complain "$folder: unknown folder; add it to \@order" unless defined $level{$folder};
    open my $in, '<', $file or die "$file: $!\n";
    while (<$in>) {
        $count{ 'lines of ' . $folder =~ s{/.*}{}r }++;
        $public{$folder}{$1} = 1 if m{^\s*\#\s*include\s+<tenon/(\w+)\.h>};
        m{^\s*\#\s*include\s+"(((?:core|lib)/\w+)/[\w.]+)"} or next;
        my ($included, $other) = ($1, $2);
        $edges{$folder}{$other}++ if $folder ne $other;
        push @{ $headers{$path} }, $included;
        complain "$path includes $included: $folder is below $other"
            if $folder ne $other && $level{$other} > $level{$folder};
        complain "$path includes $included, which is for $other alone"
            if $folder ne $other && $included =~ m{/private\.h$};
    }
}

# Returns the public headers that some include, themselves and through others. The headers of the operators are made in the build folder.
sub all_public {
    my %all;
    while (defined(my $name = shift)) {
        next if $all{$name}++;
        my ($file) = grep { -f } map { "$_/sdk/include/tenon/$name.h" } grep { defined } $srcdir, $builddir or next;
        open my $in, '<', $file or die "$file: $!\n";
        m{^#include <tenon/(\w+)\.h>} and push @_, $1 while <$in>;
    }
    return sort keys %all;
}
for my $folder (grep { /^core/ } sort keys %public) {
    complain "$folder includes <tenon/$_.h>, which is above it" for grep { $of_lib{$_} } all_public(keys %{ $public{$folder} });
}

my (%state, @path);
sub visit {
    my ($file) = @_;
    return if ($state{$file} // '') eq 'done';
    if (($state{$file} // '') eq 'open') {
        complain "includes in a circle: @path $file";
        return;
    }
    $state{$file} = 'open';
    push @path, $file;
    visit($_) for @{ $headers{$file} // [] };
    pop @path;
    $state{$file} = 'done';
}
visit($_) for sort keys %headers;

open my $up, '<', "$srcdir/lib/library/upward_calls.c" or die "$srcdir/lib/library/upward_calls.c: $!\n";
/^    \.\w+ = \w+,$/ and $count{'functions called upwards'}++ while <$up>;

# ---- symbols ----
my $objects = 0;
if (defined $builddir) {
    my (%defined_in, %used, %internal);
    for my $folder (@order) {
        my @files = glob "$builddir/$folder/.libs/*.o";
        @files = glob "$builddir/$folder/*.o" unless @files;
        for my $file (@files) {
            my ($name) = $file =~ m{-([^/-]+)\.o$} or next;
            next unless grep { -f "$_/$folder/$name.c" } $srcdir, $builddir; # an object of a file that is gone
            $objects++;
            for (qx(nm "$file")) {
                if    (/^\S*\s+[TDBRVGSCi] (\S+)/) { $defined_in{$1} = $folder }
                elsif (/^\s+U (\S+)/)             { push @{ $used{$folder}{$1} }, $name }
            }
            my $floor = $folder =~ s{/.*}{}r;
            for (qx(size "$file")) {
                /^\s*(\d+)\s+(\d+)\s/ and $count{"bytes of $floor"} += $1 + $2;
            }
        }
    }
    for my $folder (sort keys %used) {
        for my $symbol (sort keys %{ $used{$folder} }) {
            my $other = $defined_in{$symbol} // next;
            $internal{$symbol} = 1
                if $folder =~ /^lib/ && $folder ne 'lib/library' && $other =~ /^core/ && $symbol =~ /^tn__/;
            next if $level{$other} <= $level{$folder} || $tables{$symbol};
            complain "$folder (@{ $used{$folder}{$symbol} }) uses $symbol of $other, which is above it";
        }
    }
    $count{'internal names that lib takes from core'} = keys %internal;
}

my $relations = 0;
$relations += keys %{ $edges{$_} } for keys %edges;
print scalar(@order), " folders, $relations relations, $objects objects\n";
for my $what (sort keys %count) {
    print "$what: $count{$what}, at most $most{$what}\n";
    # Objects with sanitizers or without optimization are larger.
    complain "too many $what" if $count{$what} > $most{$what} && ($what !~ /^bytes/ || ($ENV{TN_SANITIZERS} // '') eq 'no');
}
exit $bad;
