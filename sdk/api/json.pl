# SPDX-License-Identifier: MIT
#
# The text of api.json, from what generate.pl and declarations.pl read: everything that a binding
# needs to call the library without a compiler. docs/plugins/bindings.md describes it.

package Json;
use strict;
use warnings;
use JSON::PP ();

sub truth { return $_[0] ? JSON::PP::true : JSON::PP::false }

# Returns the direction of a parameter that has no tag: a pointer to const is read, a pointer to an
# opaque object (a struct whose members are not public) is passed on, any other pointer is written.
sub direction
{
    my ($p, $tags, $inside) = @_;
    my $type = $p->{type};
    return 'inout' if grep { $_ eq $p->{name} } @{ $tags->{inout} };
    return 'in' if $p->{callback} || $p->{function} || !($type =~ /\*|\[/ || $p->{array});
    return 'in' if $type =~ /^const (?:struct )?\w+(?: \*|\[)/;
    return $tags->{array}{ $p->{name} } ? 'out' : 'in' if $type eq 'void *';
    return 'in' if $type =~ /\*const \*$/;
    my ($base) = $type =~ /^(?:struct )?(\w+) \*$/;
    return 'in' if grep { $_ eq $p->{name} } @{ $tags->{taken} };
    return 'in' if defined $base && $base =~ /^tn_/ && is_object($base);
    return $inside && defined $base && Declarations::is_struct($base) ? 'inout' : 'out';
}

my %number;     # types that are numbers under another name
sub is_object { return !Declarations::is_struct($_[0]) && !$number{ $_[0] } }

# Returns the number of elements of an argument: a parameter, a member of a parameter, or a number.
sub length_of
{
    my ($p, $tags, @all) = @_;
    return $tags->{array}{ $p->{name} } if $tags->{array}{ $p->{name} };
    return $1 + 0 if $p->{type} =~ /\[(\d+)\]$/;
    return undef unless $p->{type} =~ /\*$/;
    return 'shape.count' if $p->{type} eq 'const int64_t *' && grep { $_->{name} eq 'shape' } @all;
    my ($place) = grep { $all[$_] == $p } 0 .. $#all;
    my $next = $all[ $place + 1 ];
    return $next->{name}
        if $next && $next->{name} =~ /^(?:size|capacity)$/ && $p->{type} ne 'void *';
    return $next->{name} if $next && $p->{type} =~ /\*const \*$/ && $next->{name} =~ /^n_|^count$/;
    # A second list has the length of the first.
    for my $other (reverse @all[ 0 .. $place - 1 ]) {
        my $length = $tags->{array}{ $other->{name} };
        return $length if defined $length && $p->{type} =~ /\*const \*$/;
    }
    return undef;
}

sub function
{
    my ($f, $call) = @_;
    my @all = @{ $f->{parameters} };
    my $tags = $f->{tags};
    my %taken = map { $_ => 1 } @{ $tags->{taken} };
    $taken{ $all[0]{name} } = 1 if $f->{name} =~ /_drop$/;
    my @parameters = map { {
        name => $_->{name}, type => $_->{type}, declaration => $_->{text},
        direction => direction($_, $tags), length => length_of($_, $tags, @all),
        taken => truth($taken{ $_->{name} }),
        null => truth($call->{nullable}($f, $_)), pointer => truth($_->{pointer}),
        through => truth($call->{through}($f, $_)), count => $tags->{array}{ $_->{name} },
        $_->{function} ? (callback => callback(Declarations::signature($_->{type}))) : (),
    } } @all;
    return {
        name => $f->{name}, result => $f->{result}, header => $f->{file}, line => $f->{line} + 0,
        help => $f->{words}, variadic => truth($f->{variadic}), program => truth($f->{program}),
        since => $call->{since}($f), thread => $tags->{thread}, ownership => $tags->{ownership},
        parameters => \@parameters,
    };
}

sub callback
{
    my ($c) = @_;
    for my $p (@{ $c->{parameters} }) {
        $p->{direction} = direction($p, {}, 1);
        delete $p->{help};
        callback($p->{callback}) if $p->{callback};
    }
    return $c;
}

sub members
{
    for my $m (@{ $_[0] }) {
        callback($m->{callback}) if $m->{callback};
        members($m->{members}) if $m->{members};
    }
}

sub text
{
    my ($interfaces, $headers, $call) = @_;
    my (@list, %id, %constant);
    $number{ $_->{name} } = $_->{type} ne 'object' for map { @{ $_->{types} } } @$headers;
    for my $interface (@$interfaces) {
        $id{ $interface->{header} =~ s{.*/}{}r } = $interface->{id};
        push @list, { id => $interface->{id}, revision => $interface->{revision} + 0,
                      header => $interface->{header} =~ s{.*/}{}r,
                      functions => [ map { function($_, $call) } @{ $interface->{functions} } ] };
    }
    for my $h (@$headers) {
        $h->{interface} = $id{ $h->{name} };
        callback($_) for @{ $h->{callbacks} };
        members($_->{members}) for @{ $h->{structs} };
        $constant{ $_->{name} } = $_->{value} for @{ $h->{constants} };
    }
    my %abi = (major => $constant{TN_ABI_MAJOR}, minor => $constant{TN_ABI_MINOR});
    return JSON::PP->new->canonical->pretty->indent_length(1)
        ->encode({ abi => \%abi, headers => $headers, interfaces => \@list });
}

1;
