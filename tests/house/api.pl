#!/usr/bin/env perl
# SPDX-License-Identifier: MIT
#
# api.pl API.json OPERATORS.json LAYOUT.golden EXPORTS SRCDIR OPS.h: checks that the two JSON files
# suffice to write a binding without a compiler: they give the layouts and constants of
# LAYOUT.golden, which a compiler computed; they have every exported function, with its threads, the
# owner of its result, and whether each pointer is an input or an output. Also checks that every
# exported function has a user in SRCDIR, or a line in tests/house/api_kept.txt that says why it
# stays, and bounds the number of these lines.
use strict;
use warnings;
use File::Find ();
use JSON::PP ();

my ($api, $operators, $golden, $exports, $srcdir, $wrappers) = @ARGV;
my $most_kept = 117;
my $failed = 0;
sub complain { print @_, "\n"; $failed = 1; }
sub json
{
    my ($path) = @_;
    open my $in, '<', $path or die "$path: $!\n";
    local $/;
    return JSON::PP::decode_json(<$in>);
}
sub lines
{
    my ($path) = @_;
    open my $in, '<', $path or die "$path: $!\n";
    chomp(my @lines = <$in>);
    return @lines;
}

$api = json($api);
$operators = json($operators);
my %size = (bool => 1, char => 1, 'unsigned char' => 1, int8_t => 1, uint8_t => 1,
            int16_t => 2, uint16_t => 2, int => 4, int32_t => 4, uint32_t => 4, int64_t => 8, uint64_t => 8, size_t => 8,
            float => 4, double => 8);
my (%alias, %struct, %constant);
for my $header (@{ $api->{headers} }) {
    $alias{ $_->{name} } = $_->{type} for grep { $_->{type} ne 'object' } @{ $header->{types} };
    $struct{ $_->{name} } = $_->{members} for @{ $header->{structs} };
    $constant{ $_->{name} } = $_->{value}
        for @{ $header->{constants} }, map { @{ $_->{values} } } @{ $header->{enums} };
}
for my $operator (grep { $_->{struct} } @{ $operators->{operators} }) {
    $struct{ $operator->{struct} } = [
        { name => 'size', type => 'uint32_t' },
        map { { name => $_->{name}, type => $operators->{types}{ $_->{type} }{c} } }
            @{ $operator->{options} } ];
}

# Size and alignment of a type.
sub measure
{
    my ($member) = @_;
    my $type = $member->{type};
    my ($size, $align);
    if ($member->{members}) {
        (undef, $size, $align) = layout($member->{members}, $type eq 'union');
    } elsif ($type =~ /\*/ || $member->{callback}) {
        $size = $align = 8;
    } elsif ($struct{ $type =~ s/^struct //r }) {
        (undef, $size, $align) = layout($struct{ $type =~ s/^struct //r });
    } else {
        $type = $alias{$type} while exists $alias{$type};
        $size = $align = $size{$type} or die "$member->{name}: the type $type is not in api.json\n";
    }
    return ($size * ($member->{array} // 1), $align);
}

sub layout
{
    my ($members, $union) = @_;
    my ($at, $widest, $end, @lines) = (0, 1, 0);
    for my $member (@$members) {
        my ($size, $align) = measure($member);
        $at = int(($at + $align - 1) / $align) * $align;
        push @lines, "  $member->{name} $at $size";
        $end = $at + $size if $at + $size > $end;
        $at = $end unless $union;
        $widest = $align if $align > $widest;
    }
    return (\@lines, int(($end + $widest - 1) / $widest) * $widest, $widest);
}

my (%wanted, $name);
for my $line (lines($golden)) {
    if ($line =~ /^struct (\w+)/) { $name = $1; $wanted{$name} = [ $line ] }
    elsif ($line eq 'constants') { undef $name }
    elsif (defined $name) { push @{ $wanted{$name} }, $line }
    elsif ($line =~ /^  (\w+) (-?\d+)$/) {
        complain("the constant $1 is not in api.json, or not $2")
            unless defined $constant{$1} && $constant{$1} == $2;
    }
}
for my $struct (sort keys %wanted) {
    if (!$struct{$struct}) { complain("struct $struct is in neither of the files"); next }
    my ($lines, $size) = layout($struct{$struct});
    my ($have, $want) = map { join "\n", @$_ } [ "struct $struct $size", @$lines ],
        $wanted{$struct};
    complain("from the files follows\n$have\nbut the compiler says\n$want") if $have ne $want;
}
$wanted{$_} or complain("struct $_ is not in the golden layout") for sort keys %struct;

my %function = map { $_->{name} => $_ } map { @{ $_->{functions} } } @{ $api->{interfaces} };
$function{$_} or complain("the exported function $_ is not in api.json") for lines($exports);
for my $f (map { $function{$_} } sort keys %function) {
    complain("$f->{name}: nothing says who owns the result: tag it")
        if !$f->{ownership} && $f->{result} =~ /\*$|^tn_ints$/;
    complain("$f->{name}: nothing says what threads may call it") unless $f->{thread};
    for my $p (@{ $f->{parameters} }) {
        complain("$f->{name}: $p->{name} is neither in nor out")
            unless $p->{direction} =~ /^(?:in|out|inout)$/;
        complain("$f->{name}: the length of $p->{name} is not known: tag it with [array]")
            if $p->{type} =~ /^\w+ \*(?:const )?\*$/ && !defined $p->{length};
    }
}
for my $operator (@{ $operators->{operators} }) {
    for my $option (@{ $operator->{options} }) {
        complain("$operator->{name}: $option->{name}: no default, and not required")
            unless defined $option->{default} || $option->{required};
    }
}

# The functions that plugins, tools, examples, benchmarks, bindings, and functions and macros of
# public headers name. A function with `...` calls the one with a va_list for them.
my %named;
sub read_names
{
    my ($path) = @_;
    # The generated table names each function; a package has it among the sources.
    return if $path =~ m{/sdk/include/tenon/host\.h$};
    my $text = do { local $/; open my $in, '<', $path or die "$path: $!\n"; <$in> };
    if ($path =~ m{/sdk/include/}) {
        $text =~ s{/\*.*?\*/}{}gs;
        $text =~ s{^TN_(?:API|PROGRAM)\b[^;]*;}{}gm;
    }
    $named{$_} = 1 for $text =~ /\btn_\w+/g;
}
File::Find::find({ no_chdir => 1, wanted => sub { read_names($_) if -f && /\.(?:c|h|in|cl|cu|py|pl|ops)$/ } },
    map { "$srcdir/$_" } qw(plugins tools examples bench bindings sdk/template sdk/conform sdk/include));
read_names($wrappers);
for my $f (values %function) {
    $named{"$f->{name}v"} = 1 if $f->{variadic} && $named{ $f->{name} };
}
my %row = map { /^([A-Z]+-\d+) / ? ($1 => 1) : () } lines("$srcdir/tests/spec/rows.txt");
my %kept;
for (grep { !/^#/ } lines("$srcdir/tests/house/api_kept.txt")) {
    my ($name, $why) = /^(\w+) +(\S.*)$/ or complain("api_kept.txt: no reason: $_") and next;
    $kept{$name} = 1;
    complain("api_kept.txt: $name is no exported function") unless $function{$name};
    complain("api_kept.txt: $name has a user: remove its line") if $named{$name};
    complain("api_kept.txt: $name: there is no $_")
        for grep { !$row{$_} } $why =~ /\b[A-Z]+-\d+/g;
    complain("api_kept.txt: $name: there is no $_") for grep { !$function{$_} } $why =~ /\btn_\w+/g;
    for my $page ($why =~ m{\bdocs/\S+}g) {
        complain("api_kept.txt: $page does not name $name")
            unless -f "$srcdir/$page" && grep { /\b$name\b/ } lines("$srcdir/$page");
    }
}
for (sort grep { !$named{$_} && !$kept{$_} } lines($exports)) {
    complain("$_: no user: remove it, or say in tests/house/api_kept.txt why it stays");
}
complain(scalar(keys %kept), " functions without a user; expected at most $most_kept") if keys %kept > $most_kept;

print scalar(keys %wanted), " structs, ", scalar(keys %constant), " constants, ",
    scalar(keys %function), " functions, ", scalar(keys %kept), " of them without a user, at most $most_kept\n";
exit $failed;
