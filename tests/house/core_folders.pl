#!/usr/bin/env perl
# SPDX-License-Identifier: MIT
#
# core_folders.pl SRCDIR [BUILDDIR]: checks which folders of core/ use which. A folder may include only headers of folders that
# precede it in @order. With a build folder, the symbols of its objects are checked as well: a folder may use only symbols that
# folders before it define, and the tables of functions that core/library/upward_calls.c sets.
use strict;
use warnings;

my @order = qw(base plugin tensor op grad check module train data io checkpoint graph comm library);
my %tables = map { $_ => 1 } qw(tn__base_up tn__plugin_up tn__tensor_up tn__op_up tn__module_up);
my ($srcdir, $builddir) = @ARGV;
my %level = map { $order[$_] => $_ } 0 .. $#order;
my $bad = 0;

sub complain {
    print @_, "\n";
    $bad = 1;
}

# ---- includes: between folders, and between the files of one folder ----
my (%edges, %headers);
for my $file (sort glob "$srcdir/core/*/*.[ch]") {
    my ($path, $folder) = $file =~ m{(core/(\w+)/\w+\.[ch])$} or complain "$file: letters, digits and underscores only" and next;
    complain "core/$folder: unknown folder; add it to \@order" unless defined $level{$folder};
    open my $in, '<', $file or die "$file: $!\n";
    while (<$in>) {
        m{^\s*\#\s*include\s+"(core/(\w+)/[\w.]+)"} or next;
        my ($included, $other) = ($1, $2);
        $edges{$folder}{$other}++ if $folder ne $other;
        push @{ $headers{$path} }, $included;
        complain "$path includes $included: core/$folder is below core/$other"
            if $folder ne $other && $level{$other} > $level{$folder};
        complain "$path includes $included, which is for core/$other alone"
            if $folder ne $other && $included =~ m{/private\.h$};
    }
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

# ---- symbols ----
my $objects = 0;
if (defined $builddir) {
    my (%defined_in, %used);
    for my $folder (@order) {
        my @files = glob "$builddir/core/$folder/.libs/*.o";
        @files = glob "$builddir/core/$folder/*.o" unless @files;
        for my $file (@files) {
            my ($name) = $file =~ m{-([^/-]+)\.o$} or next;
            next unless grep { -f "$_/core/$folder/$name.c" } $srcdir, $builddir; # an object of a file that is gone
            $objects++;
            for (qx(nm "$file")) {
                if    (/^\S*\s+[TDBRVGSCi] (\S+)/) { $defined_in{$1} = $folder }
                elsif (/^\s+U (\S+)/)             { push @{ $used{$folder}{$1} }, $name }
            }
        }
    }
    for my $folder (sort keys %used) {
        for my $symbol (sort keys %{ $used{$folder} }) {
            my $other = $defined_in{$symbol} // next;
            next if $level{$other} <= $level{$folder} || $tables{$symbol};
            complain "core/$folder (@{ $used{$folder}{$symbol} }) uses $symbol of core/$other, which is above it";
        }
    }
}

my $count = 0;
$count += keys %{ $edges{$_} } for keys %edges;
print scalar(@order), " folders, $count relations, $objects objects\n";
exit $bad;
