# SPDX-License-Identifier: MIT
#
# Reads what the public headers declare besides functions: enums, structs, types, callbacks and
# constants, with the comment of each. This is not a C parser: the headers use only a few forms, and
# any other form is an error. generate.pl loads this file and writes the result to api.json.

package Declarations;
use strict;
use warnings;

my %comment;    # by number, as the text has them: \x01NUMBER\x02
my %value = (INT64_MIN => '-9223372036854775808', INT64_MAX => '9223372036854775807');
my %struct;     # every struct with members
my $file;

sub refuse { die "$file: ", @_, "\n" }

# ---- pieces of C ---------------------------------------------------------------------------------

# Splits at commas outside parentheses.
sub parameters
{
    my ($text) = @_;
    my ($depth, $piece, @pieces) = (0, '');
    for my $c (split //, $text) {
        $depth++ if $c eq '(';
        $depth-- if $c eq ')';
        if ($c eq ',' && !$depth) { push @pieces, $piece; $piece = ''; next }
        $piece .= $c;
    }
    push @pieces, $piece;
    s/^\s+|\s+$//g for @pieces;
    return @pieces == 1 && $pieces[0] eq 'void' ? () : @pieces;
}

sub squeeze
{
    my ($text) = @_;
    $text =~ s/\x01\d+\x02//g;
    $text =~ s/\s+/ /g;
    $text =~ s/^ | $//g;
    return $text;
}

# Returns the text of a comment without its tags and stars.
sub words_of
{
    my ($number) = @_;
    return '' unless defined $number;
    my $text = $comment{$number};
    $text =~ s{^/\*|\*/$}{}g;
    $text =~ s{^\s*\*( |$)}{}mg;
    return squeeze($text);
}

# Returns the result and the parameters of a pointer to a function; undef for other types.
sub signature
{
    my ($text) = @_;
    my ($result, $list) = squeeze($text) =~ /^(.*?)\s*\(\*\s*\w*\)\s*\((.*)\)$/ or return undef;
    return { result => $result, parameters => [ map { member($_, '') } parameters($list) ] };
}

# Splits "const tn_view *const *in" or "int64_t shape[TN_MAX_DIMS]" into name, type and length.
sub member
{
    my ($text, $help) = @_;
    $text = squeeze($text);
    if ($text =~ /\(\*\s*(\w+)\)/) {
        return { name => $1, type => $text, callback => signature($text), help => $help };
    }
    $text =~ /^(.*?[\s*])(\w+)(?:\[(\w*)\])?$/ or refuse("cannot read \"$text\"");
    my ($type, $name, $array) = ($1, $2, $3);
    $type =~ s/\s+$//;
    return { name => $name, type => $type, help => $help, defined $array ? (array => $array) : () };
}

# ---- bodies of enums and structs -----------------------------------------------------------------

# Returns the value of an expression of integer constants; undef if the text is something else.
sub evaluate
{
    my ($text) = @_;
    $text =~ s/U?INT64_C\((\w+)\)/$1/g;
    $text =~ s/TN_BIT\((\w+)\)/(1 << $1)/g;
    $text =~ s/\b([A-Z]\w+)\b/exists $value{$1} && defined $value{$1} ? $value{$1} : $1/ge;
    return undef unless $text =~ /^(?:0x[0-9a-fA-F]+|\d+|[-+()|<>\s])+$/ && $text =~ /\d/;
    my $number = eval $text;    ## no critic: digits and operators only
    return defined $number ? "$number" : undef;
}

# A comment at the end of a line belongs to the code before it, any other comment to the code after.
sub each_piece
{
    my ($body, $ends, $take) = @_;
    my ($before, $last);
    pos($body) = 0;
    while ($body =~ /\G([ \t]*)(\n?\s*)/gc && pos($body) < length $body) {
        my $new_line = $2 =~ /\n/;
        if ($body =~ /\G\x01(\d+)\x02/gc) {
            if ($last && !$new_line && !defined $before) { $_->{help} ||= words_of($1) for @$last }
            else { $before = $1 }
            next;
        }
        $last = [ $take->(\$body, words_of($before)) ];
        undef $before;
    }
}

sub enum_values
{
    my ($body) = @_;
    my ($next, @values) = (0);
    each_piece($body, ',', sub {
        my ($at, $help) = @_;
        $$at =~ /\G(TN_\w+)\s*(?:=\s*([^,\x01]+?)\s*)?(?:,|(?=\x01)|$)/gc
            or refuse("cannot read an enum at: ", substr $$at, pos($$at) // 0, 60);
        my ($name, $number) = ($1, defined $2 ? evaluate($2) : $next);
        defined $number or refuse("the value of $name is no number");
        $value{$name} = $number;
        $next = $number + 1;
        push @values, { name => $name, value => $number + 0, help => $help };
        return $values[-1];
    });
    return \@values;
}

sub struct_members
{
    my ($body) = @_;
    my @members;
    each_piece($body, ';', sub {
        my ($at, $help) = @_;
        my @new;
        if ($$at =~ /\G(struct|union)\s*(\{(?:[^{}]++|(?2))*\})\s*(\w+)\s*;/gc) {
            @new = { name => $3, type => $1, help => $help,
                     members => struct_members(substr $2, 1, -1) };
        } elsif ($$at =~ /\G([^;]+);/gc) {
            my ($first, @more) = parameters($1);
            @new = member($first, $help);
            (my $base = $new[0]{type}) =~ s/\s*\*.*//;
            push @new, map { member("$base $_", $help) } @more;
        } else {
            refuse("cannot read a struct at: ", substr $$at, pos($$at) // 0, 60);
        }
        push @members, @new;
        return @new;
    });
    my %have = map { $_->{name} => 1 } @members;
    for my $m (@members) {      # the length of what a member points to
        next unless $m->{type} =~ /\*$/ && !defined $m->{array};
        my ($length) = grep { $have{$_} }
            "n_$m->{name}", $m->{name} =~ /^(?:at|list|names)$/ ? 'count' : ();
        $m->{length} = $length if defined $length;
    }
    return \@members;
}

# ---- a header ------------------------------------------------------------------------------------

# Removes directives and the parts of a header that are only for C++; returns the macros.
sub preprocess
{
    my ($text) = @_;
    my (@kept, @macros, @skip);
    $text =~ s/\\\n/ /g;
    for my $line (split /\n/, $text, -1) {
        my $skipping = grep { $_ } @skip;
        if ($line =~ /^\s*#\s*(\w+)\s*(.*)$/) {
            my ($word, $rest) = ($1, $2);
            push @skip, $rest eq '__cplusplus' if $word =~ /^if/;
            $skip[-1] = !$skip[-1] && $skip[-2] // 0 if $word eq 'else' && @skip;
            pop @skip if $word eq 'endif';
            # A macro inside of a condition, other than the include guard, is a setting: left out.
            push @macros, $rest if $word eq 'define' && @skip == 1;
            push @kept, '';
        } else {
            push @kept, $skipping ? '' : $line;
        }
    }
    return (join("\n", @kept), \@macros);
}

sub constants
{
    my ($macros) = @_;
    my @constants;
    for my $macro (@$macros) {
        my ($name, $body) = $macro =~ /^(TN_\w+)\s+(\S.*)$/ or next;
        my ($number) = $body =~ /\x01(\d+)\x02\s*$/;
        my $help = words_of($number);
        $body = squeeze($body);
        if ($body =~ /^"([^"]*)"$/) {
            push @constants, { name => $name, value => $1, type => 'const char *', help => $help };
        } elsif ($body =~ /^\(\((\w+ \*)\)\(uintptr_t\)(\d+)\)$/) {
            push @constants, { name => $name, value => $2 + 0, type => $1, help => $help };
        } elsif (defined(my $found = evaluate($body))) {
            $value{$name} = $found;
            push @constants, { name => $name, value => $found + 0, type => 'int64_t',
                               help => $help };
        }
    }
    return \@constants;
}

# Returns the common prefix of the names of an enum, such as "TN_LOG_".
sub prefix_of
{
    my ($first, @more) = map { $_->{name} } @{ $_[0] };
    for my $name (@more) {
        chop $first while index($name, $first) != 0;
    }
    return $1 if !@more && $first =~ /^(TN_[^_]*_)/;
    $first =~ s/[^_]*$//;
    return $first;
}

sub header
{
    my ($path, $shown) = @_;
    $file = $shown;
    open my $in, '<', $path or die "$path: $!\n";
    my $text = do { local $/; <$in> };
    my ($top) = $text =~ m{\A(/\*.*?\*/)}s;
    %comment = (0 => $top // '');
    my $n = 0;
    $text =~ s{(/\*.*?\*/)}{ $comment{ ++$n } = $1; "\x01$n\x02" }gse;
    ($text, my $macros) = preprocess($text);
    my $help = words_of(0);
    $help =~ s/^SPDX-License-Identifier: \S+ //;
    $help =~ s/ ?tenon-interface: \S+ \d+//;
    my %found = (name => $shown =~ s{.*/}{}r, help => $help, types => [], enums => [],
                 structs => [], callbacks => []);
    my ($before, $alias);
    pos($text) = 0;
    while ($text =~ /\G(\s*)/gc && pos($text) < length $text) {
        undef $before if $1 =~ /\n\s*\n/;
        if ($text =~ /\G\x01(\d+)\x02/gc) { $before = $1; next }
        next if $text =~ /\GTN_(?:BEGIN|END)_DECLS/gc;
        my $words = words_of($before);
        my $nested = qr/(\{(?:[^{}]++|(?-1))*\})/;
        if ($text =~ /\G(?:typedef\s+)?struct\s+(tn_\w+)\s*$nested\s*\w*\s*;/gc) {
            my ($name, $body) = ($1, $2);
            push @{ $found{structs} },
                $struct{$name} = { name => $name, help => $words,
                                   members => struct_members(substr $body, 1, -1) };
        } elsif ($text =~ /\Genum\s*\{([^{}]*)\}\s*;/gc) {
            my $values = enum_values($1);
            push @{ $found{enums} }, { name => $alias, prefix => prefix_of($values),
                                       values => $values, help => $words };
        } elsif ($text =~ /\Gtypedef\s+struct\s+(tn_\w+)\s+\w+\s*;/gc) {
            push @{ $found{types} }, { name => $1, type => 'struct', help => $words };
        } elsif ($text =~ /\Gtypedef\s+([\w\s*]+?)\(\*(tn_\w+)\)\s*(\([^;]*\))\s*;/gc) {
            my $name = $2;
            push @{ $found{callbacks} },
                { name => $name, help => $words, %{ signature("$1 (*)$3") } };
        } elsif ($text =~ /\Gtypedef\s+([\w\s]+?\**)\s*(tn_\w+)\s*(\([^;]*\))\s*;/gc) {
            my $name = $2;
            push @{ $found{callbacks} },
                { name => $name, help => $words, %{ signature("$1 (*)$3") } };
        } elsif ($text =~ /\Gtypedef\s+(\w+)\s+(tn_\w+)\s*;/gc) {
            push @{ $found{types} }, { name => $2, type => $1, help => $words };
            $alias = $2;
            next;
        } elsif ($text !~ /\G[^;{}]*(?:;|$nested\s*;?)/gc) {    # functions, TN_BEGIN_DECLS
            $text =~ /\G\S+/gc;
        }
        undef $_ for $before, $alias;
    }
    $found{constants} = constants($macros);
    return \%found;
}

# Computes the lengths of arrays and finds opaque objects, after all headers have been read.
sub finish
{
    my (@headers) = @_;
    my $number = sub {
        my ($self, $members) = @_;
        for my $m (@$members) {
            $self->($self, $m->{members}) if $m->{members};
            next unless defined $m->{array};
            my $length = evaluate($m->{array}) // die "$m->{name}\[$m->{array}]: no number\n";
            $m->{array} = $length + 0;
        }
    };
    for my $h (@headers) {
        $number->($number, $_->{members}) for @{ $h->{structs} };
        for my $t (@{ $h->{types} }) {
            $t->{type} = 'object' if $t->{type} eq 'struct' && !$struct{ $t->{name} };
        }
        @{ $h->{types} } = grep { $_->{type} ne 'struct' } @{ $h->{types} };
    }
}

# Returns whether a type is a pointer to a struct whose members are public, not to an opaque object.
sub is_struct { return exists $struct{ $_[0] } }

1;
