# SPDX-License-Identifier: MIT
#
# The single changes that make mutate draws from: changes_of(TEXT) gives each place of a C source where one can be made, as
# { kind, at, length, with }. Comments, strings, preprocessor lines, assertions and arguments of messages are left out. Read by
# tests/mutate/mutate. It relies on the layout that clang-format gives: blanks around a binary operator, none after a unary one.
use strict;
use warnings;

my %TURNED = (
    '<'  => ['compare', '<=', '>='], '<=' => ['compare', '<', '>'], '>'  => ['compare', '>=', '<='], '>=' => ['compare', '>', '<'],
    '==' => ['compare', '!='], '!=' => ['compare', '=='], '&&' => ['logic', '||'], '||' => ['logic', '&&'],
    '+'  => ['arithmetic', '-'], '-' => ['arithmetic', '+'], '*' => ['arithmetic', '/', '+'], '/' => ['arithmetic', '*'], '%' => ['arithmetic', '/'],
    '+=' => ['arithmetic', '-=', '='], '-=' => ['arithmetic', '+=', '='], '*=' => ['arithmetic', '/=', '='], '/=' => ['arithmetic', '*='],
    '&'  => ['bits', '|'], '|' => ['bits', '&'], '<<' => ['bits', '>>'], '>>' => ['bits', '<<'], '|=' => ['bits', '&=', '='], '&=' => ['bits', '|=', '='],
    '^'  => ['bits', '|'], '++' => ['step', '--'], '--' => ['step', '++'],
);
my %NO_CALL = map { $_ => 1 } qw(if for while switch return sizeof defined _Alignof _Generic offsetof do else case goto);
# $WORDS: functions whose arguments are text for people, or assertions. $SILENT: those of them that do not change any result.
my $WORDS = qr/^(?:assert|static_assert|_Static_assert|.*(?:fail|error|refuse|warn|format|printf|text|print|explain|say|append).*|tn__?log[a-z_]*)$/i;
my $SILENT = qr/^(?:assert|static_assert|_Static_assert|tn__?log|tn_logv|tn__log_[a-z]*|.*warn.*)$/;

# Returns the text with spaces instead of everything that is no code; strings keep their quotes.
sub masked {
    my ($text) = @_;
    my $blank = sub { my $s = shift; $s =~ s/[^\n]/ /g; $s };
    $text =~ s{(/\*.*?\*/|//[^\n]*)|("(?:\\.|[^"\\\n])*")|('(?:\\.|[^'\\\n])+')}
              { defined $1 ? $blank->($1) : defined $2 ? '"' . ('s' x (length($2) - 2)) . '"' : "'" . ('c' x (length($3) - 2)) . "'" }gse;
    $text =~ s{^([ \t]*#(?:[^\n]*\\\n)*[^\n]*)}{ $blank->($1) }gme;
    return $text;
}

# Tokens as [type, text, offset, depth of braces, depth of parentheses]: w word, n number, o operator, s string.
sub tokens_of {
    my ($code) = @_;
    my ($depth, $inside) = (0, 0);
    my @tokens;
    while ($code =~ /\G\s*(?:([A-Za-z_]\w*)|((?:0[xX][0-9a-fA-F]+|\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?)\w*)|("s*"|'c*')|
                     (<<=|>>=|\.\.\.|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*\/%&|^]=|[^\s\w]))/gcx) {
        my ($type, $word) = defined $1 ? ('w', $1) : defined $2 ? ('n', $2) : defined $3 ? ('s', $3) : ('o', $4);
        $depth-- if $word eq '}';
        $inside-- if $word eq ')';
        push @tokens, [$type, $word, pos($code) - length $word, $depth, $inside];
        $depth++ if $word eq '{';
        $inside++ if $word eq '(';
    }
    return @tokens;
}

# Returns, for the index of each opening bracket, that of its closing bracket, and the reverse.
sub pairs_of {
    my ($tokens) = @_;
    my (@open, %pair);
    for my $i (0 .. $#$tokens) {
        my $word = $tokens->[$i][1];
        if ($word =~ /^[(\[{]$/) { push @open, $i }
        elsif ($word =~ /^[)\]}]$/ && @open) { my $o = pop @open; $pair{$o} = $i; $pair{$i} = $o }
    }
    return \%pair;
}

# Returns for each token: 2 in a call of $SILENT, 1 in the arguments of another call of $WORDS, else 0.
sub quiet_parts {
    my ($tokens, $pair) = @_;
    my @quiet = (0) x @$tokens;
    for my $i (0 .. $#$tokens - 1) {
        next unless $tokens->[$i][0] eq 'w' && $tokens->[$i + 1][1] eq '(' && $tokens->[$i][1] =~ $WORDS && exists $pair->{ $i + 1 };
        my $level = $tokens->[$i][1] =~ $SILENT ? 2 : 1;
        for my $j ($i .. $pair->{ $i + 1 }) { $quiet[$j] = $level if $quiet[$j] < $level && ($level == 2 || $j > $i) }
    }
    return \@quiet;
}

sub number_changes {
    my ($word) = @_;
    return ($word =~ /^(\d+)([uUlL]*)$/ && $word !~ /^0\d/) ? ($1 == 0 ? ("1$2") : ($1 + 1 . $2, $1 - 1 . $2))
        : $word =~ /^0[xX]([0-9a-fA-F]+)([uUlL]*)$/ ? ("($word + 1)", "($word - 1)")
        : $word =~ /^[\d.]/ && $word =~ /[.eE]/ && $word !~ /^0[xX]/ ? ("($word + 1)", "($word - 1)") : ();
}

sub changes_of {
    my ($text) = @_;
    my $code = masked($text);
    my @tokens = tokens_of($code);
    my $pair = pairs_of(\@tokens);
    my $quiet = quiet_parts(\@tokens, $pair);
    my @changes;
    my $add = sub { my ($kind, $at, $length, $with) = @_; push @changes, { kind => $kind, at => $at, length => $length, with => $with } };
    my $span = sub { my ($from, $to) = @_; my $at = $tokens[$from][2]; ($at, $tokens[$to][2] + length($tokens[$to][1]) - $at) };
    my $source = sub { my ($at, $length) = $span->(@_); substr $text, $at, $length };

    for my $i (1 .. $#tokens - 1) {
        my ($type, $word, $at, $depth) = @{ $tokens[$i] };
        my ($before, $after) = ($tokens[$i - 1], $tokens[$i + 1]);
        next if $quiet->[$i];
        if ($type eq 'o' && $word eq '-' && $depth > 0 && substr($code, $at + 1, 1) !~ /\s/) {
            $add->('sign', $at, 1, '');
        } elsif ($type eq 'o' && $TURNED{$word} && $depth > 0) {
            my ($kind, @with) = @{ $TURNED{$word} };
            my $spaced = substr($code, $at - 1, 1) =~ /\s/ && substr($code, $at + length $word, 1) =~ /\s/;
            next if $kind ne 'step' && !$spaced;
            $add->($kind, $at, length $word, $_) for @with;
        } elsif ($type eq 'o' && $word eq '!') {
            $add->('condition', $at, 1, '');
        } elsif ($type eq 'n') {
            $add->('constant', $at, length $word, $_) for number_changes($word);
        } elsif ($type eq 'w' && $word =~ /^(?:true|false)$/) {
            $add->('constant', $at, length $word, $word eq 'true' ? 'false' : 'true');
        } elsif ($type eq 'w' && $depth > 0 && $word =~ /^(?:if|while)$/ && $after->[1] eq '(' && exists $pair->{ $i + 1 }) {
            my ($from, $length) = $span->($i + 1, $pair->{ $i + 1 });
            $add->('condition', $from, $length, '(!' . substr($text, $from, $length) . ')');
        } elsif ($type eq 'w' && $depth > 0 && $after->[1] eq '(' && !$NO_CALL{$word} && $word !~ /^[A-Z0-9_]+$/ && $word !~ $WORDS && exists $pair->{ $i + 1 }) {
            # Two neighbouring arguments are exchanged.
            my ($begin, $end, @cuts) = ($i + 2, $pair->{ $i + 1 });
            for (my $j = $begin; $j < $end; $j++) {
                if ($tokens[$j][1] =~ /^[(\[{]$/ && exists $pair->{$j}) { $j = $pair->{$j} }
                elsif ($tokens[$j][1] eq ',') { push @cuts, $j }
            }
            my @edges = ($begin - 1, @cuts, $end);
            for my $k (0 .. $#edges - 2) {
                my ($a, $b) = ($source->($edges[$k] + 1, $edges[$k + 1] - 1), $source->($edges[$k + 1] + 1, $edges[$k + 2] - 1));
                next if $a eq $b;
                my ($from, $length) = $span->($edges[$k] + 1, $edges[$k + 2] - 1);
                $add->('arguments', $from, $length, "$b, $a");
            }
        }
        # A statement begins here. A call, an assignment or a jump is deleted.
        next unless $depth > 0 && $tokens[$i][4] == 0 && ($type eq 'w' || $word eq '*' || $word eq '++' || $word eq '--');
        my $guarded = $before->[1] eq 'else' || ($before->[1] eq ')' && exists $pair->{ $i - 1 } && $tokens[$pair->{ $i - 1 } - 1][1] =~ /^(?:if|for|while)$/);
        next unless $guarded || $before->[1] =~ /^[;{}]$/;
        my $end = $i;
        while ($end < @tokens && $tokens[$end][1] ne ';') {
            last if $tokens[$end][1] eq '}';
            $end = exists $pair->{$end} && $tokens[$end][1] =~ /^[(\[{]$/ ? $pair->{$end} + 1 : $end + 1;
        }
        next unless $end < @tokens && $tokens[$end][1] eq ';';
        my ($from, $length) = $span->($i, $end);
        my $statement = substr $code, $from, $length;
        my $lines = $statement =~ tr/\n//;
        if ($word =~ /^(?:return|break|continue|goto)$/) {
            my $last = ($tokens[$end + 1][1] // '') eq '}' && $tokens[$end + 1][3] == 0;
            $add->('exit', $from, $length, ';' . "\n" x $lines) if !$last || $guarded;
        } elsif (!$NO_CALL{$word} && $word !~ $SILENT && ($statement =~ /^(?:\*|\+\+|--)*\w+(?:(?:\.|->)\w+|\[[^;=]*\])*\s*(?:(?:[-+*\/%&|^]|<<|>>)?=[^=]|\+\+;|--;|;)/
                || ($after->[1] eq '(' && exists $pair->{ $i + 1 } && $pair->{ $i + 1 } == $end - 1))) {
            next if $statement =~ /^\w+;$/;
            $add->('statement', $from, $length, ';' . "\n" x $lines);
        }
    }
    return @changes;
}

1;
