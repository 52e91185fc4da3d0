#!/usr/bin/perl
# SPDX-License-Identifier: MIT
#
# Reads the operator schema (sdk/operators/*.ops, described in README.md there) and writes
#   B/sdk/include/tenon/ops.h            option structs, defaults, wrappers
#   B/plugins/ops/schema.h               the schema as data for the definitions; lists of operators
#   B/plugins/layers/from_operators.c    the layers that are lines `layer` of the schema
#   B/plugins/layers/from_operators.h    the list of these layers
#   B/docs/reference/operators.md        the reference page of the operators
#   B/sdk/operators.json                 for bindings
#   B/tools/wrappers.h                   the wrappers by operator, for C code of graphs
# Run as perl generate.pl --srcdir S --outdir B. A malformed line is an error that names file and
# line.
use strict;
use warnings;
use File::Path qw(make_path);
use File::Basename qw(basename dirname);
use JSON::PP ();

my ($srcdir, $outdir);
while (@ARGV) {
    my $word = shift @ARGV;
    if    ($word eq '--srcdir' && @ARGV) { $srcdir = shift @ARGV; }
    elsif ($word eq '--outdir' && @ARGV) { $outdir = shift @ARGV; }
    else { die "usage: generate.pl --srcdir S --outdir B\n"; }
}
die "usage: generate.pl --srcdir S --outdir B\n" unless defined $srcdir && defined $outdir;

my %C_TYPE = (bool => 'bool', int => 'int64_t', float => 'double', string => 'const char *',
              ints => 'tn_ints', floats => 'tn_floats', dtype => 'tn_dtype',
              scalar => 'tn_scalar');
my %ZERO = (bool => 'false', int => '0', float => '0.0', string => 'NULL', ints => '{ NULL, 0 }',
            floats => '{ NULL, 0 }', dtype => 'TN_DTYPE_AUTO', scalar => 'TN_SCALAR_INIT_NONE');
my %CLASS = (float => 'TN_MASK_FLOAT', int => 'TN_MASK_INT', arith => 'TN_MASK_ARITH',
             bool => 'TN_BIT(TN_BOOL)',
             all => 'TN_MASK_ALL', complex => 'TN_MASK_COMPLEX');
my %DTYPE = map { $_ => "TN_BIT(TN_\U$_)" }
    qw(u8 i8 i16 i32 i64 f16 bf16 f32 f64 c64 c128 u16 u32 u64);
my %DTYPE_NAME = (uint8 => 'U8', int8 => 'I8', int16 => 'I16', int32 => 'I32', int64 => 'I64',
                  float16 => 'F16', bfloat16 => 'BF16', float32 => 'F32', float64 => 'F64',
                  bool => 'BOOL', complex64 => 'C64',
                  complex128 => 'C128');
my %OPERAND = (optional => 'TN_OPERAND_OPTIONAL', nograd => 'TN_OPERAND_NO_GRAD',
               nopromote => 'TN_OPERAND_NO_PROMOTE', list => 'TN_OPERAND_LIST',
               anydevice => 'TN_OPERAND_ANY_DEVICE', apart => 'TN_OPERAND_APART',
               written => 'TN_OPERAND_WRITTEN', updated => 'TN_OPERAND_UPDATED',
               from_i32 => 'TN_OPERAND_FROM_I32', from_u8 => 'TN_OPERAND_FROM_U8');
my %FLAG = map { $_ => "TN_OP_\U$_" } 
    qw(primitive basic view promote promote_float inplace into random straight_through
       pointwise reads ordered);
# What autocast does with the inputs, on devices with memory of their own and on those that compute
# in the memory of the host.
my @AUTOCAST = qw(low f32 widest refused);
my %AUTOCAST = map { ("autocast_$_" => "TN_OP_AUTOCAST_\U$_",
                      "autocast_host_$_" => "TN_OP_AUTOCAST_HOST_\U$_") } @AUTOCAST;
%FLAG = (%FLAG, %AUTOCAST);

my (@families, %seen, %wrappers);
my ($file, $line_number);
my $most_arguments = 0; # of all macros that count arguments

sub refuse { die "$file:$line_number: ", @_, "\n"; }

# Returns the C initializer of a default, and whether the default is None.
sub default_of
{
    my ($type, $text) = @_;
    if ($text eq 'None') {
        return ('INT64_MIN', 1) if $type eq 'int';
        return ('((double)NAN)', 1) if $type eq 'float';
        return ('NULL', 1) if $type eq 'string';
        return ('{ NULL, -1 }', 1) if $type eq 'ints' || $type eq 'floats';
        return ('TN_DTYPE_AUTO', 1) if $type eq 'dtype';
        return ('TN_SCALAR_INIT_NONE', 1) if $type eq 'scalar';
        refuse("an option of type $type cannot be None");
    }
    if ($type eq 'bool') {
        return ('true', 0) if $text eq 'True';
        return ('false', 0) if $text eq 'False';
        refuse("default \"$text\" of a bool: expected True or False");
    }
    if ($type eq 'int') {
        refuse("default \"$text\" of an int: expected a whole number") unless $text =~ /^-?[0-9]+$/;
        return ($text, 0);
    }
    if ($type eq 'float') {
        refuse("default \"$text\" of a float: expected a number, such as 0.5 or 1e-5")
            unless $text =~ /^-?[0-9]+(\.[0-9]+)?(e-?[0-9]+)?$/;
        return ($text =~ /[.e]/ ? $text : "$text.0", 0);
    }
    if ($type eq 'scalar') {
        refuse("default \"$text\" of a scalar: expected None or a number")
            unless $text =~ /^-?[0-9]+(\.[0-9]+)?(e-?[0-9]+)?$/;
        return ($text =~ /[.e]/ ? "TN_SCALAR_INIT_FLOAT($text)" : "TN_SCALAR_INIT_INT($text)", 0);
    }
    if ($type eq 'dtype') {
        refuse("default \"$text\" of a dtype: expected None or a name such as float32")
            unless $DTYPE_NAME{$text};
        return ("TN_$DTYPE_NAME{$text}", 0);
    }
    if ($type eq 'ints' || $type eq 'floats') {
        return ('{ NULL, 0 }', 0) if $text eq '[]';
        refuse("default \"$text\" of $type: expected [] or None");
    }
    return (quote($text), 0);
}

sub quote
{
    my ($text) = @_;
    $text =~ s/([\\"])/\\$1/g;
    return "\"$text\"";
}

# What a later version of an operator adds comes after the rest, and older calls must lack it
# without an error.
sub check_additions
{
    my ($op) = @_;
    for my $list ($op->{in}, $op->{out}, $op->{options}) {
        my $last = 0;
        for my $each (@$list) {
            my $since = $each->{since} // 0;
            refuse("operator $op->{name}: $each->{name}: `since $since` is not after that of the ",
                   "operator")
                if $since && $since <= ($op->{since} // 0);
            refuse("operator $op->{name}: $each->{name} comes after `since $last`")
                if $since < $last;
            $last = $since;
        }
    }
    refuse("operator $op->{name}: an input with `since` must be optional, and no list")
        if grep { $_->{since} && (!$_->{words}{optional} || $_->{words}{list}) } @{ $op->{in} };
    refuse("operator $op->{name}: an `arg` cannot be added with `since`")
        if grep { $_->{since} && $_->{arg} } @{ $op->{options} };
}

# Returns the operator as minor version $version of the ABI had it.
sub as_of
{
    my ($op, $version) = @_;
    return { %$op, map {
        my $list = $_;
        $list => [ grep { ($_->{since} // 0) <= $version } @{ $op->{$list} } ]
    } qw(in out options) };
}

# Returns a text of <tenon/ops.h> for all versions of an operator: TN_TARGET chooses the version.
# $make makes the text of one version.
sub by_target
{
    my ($op, $make) = @_;
    return '' if $make->($op) eq '';
    my $text = $op->{since} ? "#if TN_TARGET >= $op->{since}\n" : '';
    my %all = map { ($_->{since} // 0) => 1 } @{ $op->{in} }, @{ $op->{out} }, @{ $op->{options} };
    my @added = sort { $b <=> $a } grep { $_ } keys %all;
    my $word = 'if';
    for my $version (@added) {
        $text .= "#$word TN_TARGET >= $version\n" . $make->(as_of($op, $version));
        $word = 'elif';
    }
    $text .= "#else\n" if @added;
    $text .= $make->(as_of($op, 0));
    $text .= "#endif\n" if @added;
    return $text . ($op->{since} ? "#endif\n" : '');
}

sub finish
{
    my ($op) = @_;
    return unless $op;
    refuse("operator $op->{name} has no `math` line") unless defined $op->{math};
    my $writes = grep { $_->{words}{written} } @{ $op->{in} };
    refuse("operator $op->{name} has no output and no `written` input")
        unless @{ $op->{out} } || $writes;
    refuse("operator $op->{name} has no output: `dispatch` must name an input")
        unless @{ $op->{out} } || defined $op->{dispatch};
    refuse("operator $op->{name} has more than 16 operands")
        if @{ $op->{in} } > 16 || @{ $op->{out} } > 16;
    for my $i (0 .. $#{ $op->{in} } - 1) {
        refuse("operator $op->{name}: only the last input can be a list")
            if $op->{in}[$i]{words}{list};
    }
    my %index;
    $index{ $op->{in}[$_]{name} } = [ 'in', $_ ] for 0 .. $#{ $op->{in} };
    for my $i (0 .. $#{ $op->{out} }) {
        my $name = $op->{out}[$i]{name};
        refuse("operator $op->{name}: two operands are called $name") if $index{$name};
        $index{$name} = [ 'out', $i ];
    }
    for my $option (@{ $op->{options} }) {
        refuse("operator $op->{name}: $option->{name} is the name of an operand and of an option")
            if $index{ $option->{name} };
    }
    check_additions($op);
    $op->{save_in} = $op->{save_out} = 0;
    my @for = (0) x (@{ $op->{in} } + @{ $op->{out} });
    for my $saved (@{ $op->{save} }) {
        my ($name, $inputs) = split /:/, $saved, 2;
        my $at = $index{$name} or refuse("operator $op->{name}: `save $name` names no operand");
        my $mask = defined $inputs ? 0 : ~0 & 0xffffffff;
        for my $input (split /,/, $inputs // '') {
            my $which = $index{$input};
            refuse("operator $op->{name}: `save $saved`: $input is no input")
                unless $which && $which->[0] eq 'in';
            $mask |= 1 << $which->[1];
            $op->{save_for} = \@for;
        }
        $op->{"save_$at->[0]"} |= 1 << $at->[1];
        $for[$at->[0] eq 'in' ? $at->[1] : @{ $op->{in} } + $at->[1]] = $mask;
    }
    $op->{dispatch_input} = -1;
    if (defined $op->{dispatch}) {
        my $at = $index{ $op->{dispatch} };
        refuse("operator $op->{name}: `dispatch $op->{dispatch}` names no input")
            unless $at && $at->[0] eq 'in';
        $op->{dispatch_input} = $at->[1];
    }
    if ($op->{flags}{inplace} || $op->{flags}{into}) {
        refuse("operator $op->{name}: the in-place form needs one output")
            unless @{ $op->{out} } == 1;
        refuse("operator $op->{name}: the in-place form needs an input") unless @{ $op->{in} };
    }
    $op->{wrapper} //= $op->{name};
    if ($op->{layer}) {
        refuse("operator $op->{name}: `layer` is for operators of one input and one output ",
               "without options")
            if @{ $op->{in} } != 1 || @{ $op->{out} } != 1 || @{ $op->{options} };
        refuse("operator $op->{name}: `layer ... inplace` needs the flag inplace")
            if $op->{layer}{inplace} && !$op->{flags}{inplace};
    }
    for my $name ($op->{wrapper},
                  $op->{flags}{inplace} || $op->{flags}{into} ? "$op->{wrapper}_" : ()) {
        refuse("wrapper tn_$name is defined twice") if $wrappers{$name}++;
    }
}

# Returns the lines of a file, each with its number. A block `op a b c` defines three operators that
# differ only where a line has {x|y|z}: the first has x there, the second y, the third z.
sub lines_of
{
    my ($path) = @_;
    my (@lines, @block, @names);
    my $expand = sub {
        for my $k (0 .. $#names) {
            for (@block) {
                my ($number, $text) = @$_;
                $line_number = $number;
                $text =~ s/^(\s*op)\s.*?(\srev\s.*)?$/"$1 $names[$k]" . ($2 \/\/ '')/e;
                $text =~ s/\{([^{}]*\|[^{}]*)\}/alternative($k, scalar @names, $1)/ge;
                push @lines, [ $number, $text ];
            }
        }
        @block = @names = ();
    };
    open my $in, '<:encoding(UTF-8)', $path or die "$path: $!\n";
    while (my $line = <$in>) {
        chomp $line;
        $expand->() if $line =~ /^\s*op\s/;
        @names = split ' ', $1
            if $line =~ /^\s*op\s+([a-z][a-z0-9_]*(?:\s+(?!rev\s)[a-z][a-z0-9_]*)+)/;
        if (@names) { push @block, [ $., $line ]; } else { push @lines, [ $., $line ]; }
    }
    $expand->();
    close $in;
    return @lines;
}

sub alternative
{
    my ($which, $count, $text) = @_;
    my @all = split /\|/, $text, -1;
    refuse("{$text} has " . @all . " alternatives for $count operators") unless @all == $count;
    return $all[$which];
}

for my $path (sort glob("$srcdir/sdk/operators/*.ops")) {
    my $family = { name => basename($path, '.ops'), title => '', ops => [], plugin => 'ops' };
    push @families, $family;
    $file = "sdk/operators/" . basename($path);
    my ($op, $latest); # $latest: what a line `since` belongs to
    for (lines_of($path)) {
        my $line;
        ($line_number, $line) = @$_;
        $line =~ s/\s+$//;
        if ($line =~ /^\s*#\s*(.*)/) {
            $family->{title} .= ($family->{title} eq '' ? '' : ' ') . $1 unless $op;
            next;
        }
        next if $line eq '';
        $line =~ s/^\s+//;
        my ($key, $rest) = split /\s+/, $line, 2;
        $rest //= '';
        if ($key eq 'op') {
            finish($op);
            $rest =~ /^([a-z][a-z0-9_]*)(?:\s+rev\s+([1-9][0-9]*))?$/
                or refuse("expected `op NAME... [rev N]`, got \"$line\"");
            $op = { name => $1, rev => $2 // 1, in => [], out => [], options => [], save => [],
                    flags => {} };
            refuse("operator $1 revision $op->{rev} is defined twice") if $seen{"$1/$op->{rev}"}++;
            push @{ $family->{ops} }, $op;
            $latest = $op;
            next;
        }
        if ($key eq 'plugin') {
            refuse("`plugin` after the first `op`") if $op;
            $rest =~ /^[a-z][a-z0-9_]*$/ or refuse("expected `plugin NAME`, got \"$line\"");
            $family->{plugin} = $rest;
            next;
        }
        refuse("`$key` before the first `op`") unless $op;
        if ($key eq 'math' || $key eq 'help') {
            refuse("`$key` needs words") if $rest eq '';
            refuse("`$key` is given twice") if defined $op->{$key};
            $op->{$key} = $rest;
        } elsif ($key eq 'wrapper') {
            $rest =~ /^[a-z][a-z0-9_]*$/ or refuse("expected `wrapper NAME`, got \"$line\"");
            $op->{wrapper} = $rest;
        } elsif ($key eq 'layer') {
            $rest =~ /^([A-Z][A-Za-z0-9]*)( inplace)?$/
                or refuse("expected `layer NAME [inplace]`, got \"$line\"");
            $op->{layer} = { name => $1, inplace => defined $2 };
        } elsif ($key eq 'in' || $key eq 'out') {
            my ($name, @words) = split ' ', $rest;
            refuse("`$key` needs a name in lower case")
                unless defined $name && $name =~ /^[a-z][a-z0-9_]*$/;
            refuse("`out NAME` takes no further words") if $key eq 'out' && @words;
            my $operand = { name => $name, words => {}, mask => '0', dtypes => '' };
            for my $word (@words) {
                if ($OPERAND{$word}) {
                    refuse("`$word` after the dtypes") if $operand->{dtypes} ne '';
                    $operand->{words}{$word} = 1;
                    next;
                }
                refuse("`$word` is neither a flag of inputs nor a list of dtypes")
                    if $operand->{dtypes} ne '';
                my @masks;
                for my $part (split /,/, $word) {
                    my $mask = $CLASS{$part} // $DTYPE{$part}
                        or refuse("`$part` is neither a flag of inputs (",
                                  join(' ', sort keys %OPERAND), ") nor a dtype (",
                                  join(' ', sort(keys %CLASS), sort keys %DTYPE), ")");
                    push @masks, $mask;
                }
                $operand->{mask} = join ' | ', @masks;
                $operand->{dtypes} = $word;
            }
            refuse("input $name has no dtypes") if $key eq 'in' && $operand->{dtypes} eq '';
            push @{ $op->{$key} }, $operand;
            $latest = $operand;
        } elsif ($key eq 'arg') {
            my ($name, $type, $help) = split ' ', $rest, 3;
            refuse("expected `arg NAME TYPE HELP`, got \"$line\"")
                unless defined $help && $name =~ /^[a-z][a-z0-9_]*$/;
            refuse("`$type` is no option type (", join(' ', sort keys %C_TYPE), ")")
                unless $C_TYPE{$type};
            refuse("`arg` after `opt`") if grep { !$_->{arg} } @{ $op->{options} };
            refuse("option $name is given twice")
                if grep { $_->{name} eq $name } @{ $op->{options} };
            push @{ $op->{options} },
                { name => $name, type => $type, help => $help, arg => 1, value => $ZERO{$type} };
            $latest = $op->{options}[-1];
        } elsif ($key eq 'opt') {
            my ($name, $type, $def, $help) = split ' ', $rest, 4;
            refuse("expected `opt NAME TYPE DEFAULT HELP`, got \"$line\"")
                unless defined $help && $name =~ /^[a-z][a-z0-9_]*$/;
            refuse("`$type` is no option type (", join(' ', sort keys %C_TYPE), ")")
                unless $C_TYPE{$type};
            refuse("option $name is given twice")
                if grep { $_->{name} eq $name } @{ $op->{options} };
            my ($value, $none) = default_of($type, $def);
            push @{ $op->{options} },
                { name => $name, type => $type, help => $help, def => $def, value => $value,
                  none => $none };
            $latest = $op->{options}[-1];
        } elsif ($key eq 'since') {
            $rest =~ /^[1-9][0-9]*$/ or refuse("expected `since N`, got \"$line\"");
            refuse("`since` after nothing that it can belong to") unless $latest;
            refuse("`since` is given twice") if $latest->{since};
            $latest->{since} = $rest;
        } elsif ($key eq 'flags') {
            for my $word (split ' ', $rest) {
                refuse("`$word` is no flag (", join(' ', sort keys %FLAG), ")") unless $FLAG{$word};
                refuse("`$word` is written as a line `autocast`") if $AUTOCAST{$word};
                $op->{flags}{$word} = 1;
            }
        } elsif ($key eq 'autocast') {
            $rest =~ /^(?:host=([a-z0-9]+)\s+)?([a-z0-9]+)$/
                or refuse("expected `autocast [host=WORD] WORD`, got \"$line\"");
            my ($host, $other) = ($1 // $2, $2);
            refuse("`autocast` is given twice") if $op->{autocast}++;
            for ([ 'autocast_host_', $host ], [ 'autocast_', $other ]) {
                my ($prefix, $word) = @$_;
                next if $word eq 'none';
                refuse("`$word` is no word of `autocast` (none @AUTOCAST)")
                    unless $AUTOCAST{"$prefix$word"};
                $op->{flags}{"$prefix$word"} = 1;
            }
        } elsif ($key eq 'dispatch') {
            $op->{dispatch} = $rest;
        } elsif ($key eq 'save') {
            push @{ $op->{save} }, split ' ', $rest;
        } else {
            refuse("`$key` is no keyword ",
                   "(plugin op math help wrapper layer in out arg opt since flags autocast ",
                   "dispatch save)");
        }
    }
    finish($op);
}
die "$srcdir/sdk/operators: no *.ops file\n" unless @families;

# ---- writing -------------------------------------------------------------------------------------

sub declare
{
    my ($type, $name) = @_;
    return $C_TYPE{$type} =~ /\*$/ ? "$C_TYPE{$type}$name" : "$C_TYPE{$type} $name";
}

# Folds the words of a long comment or of a macro into lines of at most 100 columns.
sub fold
{
    my ($first, $next, $text, $tail) = @_;
    my @lines = ($first);
    for my $word (split / /, $text) {
        if (length($lines[-1]) + 1 + length($word) > 97) {
            push @lines, $next . $word;
        } else {
            $lines[-1] .= ($lines[-1] eq $first || $lines[-1] =~ /[ (]$/ ? '' : ' ') . $word;
        }
    }
    return join($tail // "\n", @lines);
}

sub write_file
{
    my ($name, $text) = @_;
    my $path = "$outdir/$name";
    make_path(dirname($path));
    if (open my $old, '<:encoding(UTF-8)', $path) {     # the same text: only sets the file's time
        local $/;
        my $had = <$old>;
        if (defined $had && $had eq $text) { utime undef, undef, $path; return; }
    }
    open my $out, '>:encoding(UTF-8)', "$path.new" or die "$path.new: $!\n";
    print $out $text or die "$path.new: $!\n";
    close $out or die "$path.new: $!\n";
    rename "$path.new", $path or die "$path: $!\n";
}

# Returns the default of an option as an argument of a call, in C and C++.
sub default_argument
{
    my ($option) = @_;
    my ($type, $value) = ($option->{type}, $option->{value});
    return $value unless $value =~ /^\{|^TN_SCALAR_INIT/;
    return 'tn_scalar_none()' if $value eq 'TN_SCALAR_INIT_NONE';
    return "tn_scalar_\L$1($2)" if $value =~ /^TN_SCALAR_INIT_(INT|FLOAT)\((.*)\)$/;
    return $option->{none} ? "tn_none_$type()" : "tn_no_$type()";
}

# Returns the parameters of a wrapper in order, each with its declaration and name, and with its
# default if it may be left out: inputs, options without a default, the outputs if there are
# several, options with a default.
# The outputs that the wrapper returns: those that the operator had from the beginning.
sub outputs
{
    my ($op) = @_;
    return grep { !$_->{since} } @{ $op->{out} };
}

sub parameters
{
    my ($op, $inplace) = @_;
    my (@all, @outs);
    push @all, { text => 'tn_tensor *into', name => 'into' } if $inplace && $op->{flags}{into};
    # Arguments that later versions added come last, those of one version as in the schema.
    my @added = sort { $a->{since} <=> $b->{since} }
        grep { $_->{since} } @{ $op->{in} }, @{ $op->{options} };
    for my $operand (grep { !$_->{since} } @{ $op->{in} }) {
        my ($name, $words) = ($operand->{name}, $operand->{words});
        if ($words->{list}) {
            push @all, { text => "tn_tensor *const *$name", name => $name },
                { text => "int64_t n_$name", name => "n_$name" };
        } else {
            push @all, { text => "tn_tensor *$name", name => $name,
                         def => $words->{optional} ? 'TN_NONE' : undef };
        }
    }
    @outs = map { { text => "tn_tensor **$_->{name}", name => $_->{name} } } outputs($op)
        if outputs($op) > 1;
    my $option = sub {
        return { text => declare($_->{type}, $_->{name}), name => $_->{name},
                 scalar => $_->{type} eq 'scalar',
                 whole => ($_->{type} =~ /^(bool|int)$/ ? 1 : 0),
                 def => $_->{arg} ? undef : default_argument($_) };
    };
    my @options = map { $option->() } grep { !$_->{since} } @{ $op->{options} };
    push @all, (grep { !defined $_->{def} } @options), @outs, grep { defined $_->{def} } @options;
    push @all, map { $_->{type} ? $option->() : { text => "tn_tensor *$_->{name}",
                                                  name => $_->{name}, def => 'TN_NONE' } } @added;
    my $last = (grep { !defined $all[$_]{def} } 0 .. $#all)[-1] // -1;
    delete $all[$_]{def} for 0 .. $last;
    return @all;
}

# Returns the macros of C for a wrapper. They add the arguments that are left out, and convert plain
# numbers to tn_scalar. The unary plus refuses pointers, which C would convert to bool.
sub macros
{
    my ($op, $inplace) = @_;
    my $name = "tn_$op->{wrapper}" . ($inplace ? '_' : '');
    my @all = parameters($op, $inplace);
    my $most = @all;
    my $least = grep { !defined $_->{def} } @all;
    my $call = sub {
        my ($n) = @_;
        my @given = map { $_->{scalar} ? "TN_SCALAR($_->{name})" : $_->{whole} ? "+($_->{name})"
                                                                               : $_->{name} }
            @all[0 .. $n - 1];
        return "($name)(" . join(', ', @given, map { $_->{def} } @all[$n .. $most - 1]) . ')';
    };
    my $taken = sub { join ', ', map { $_->{name} } @all[0 .. $_[0] - 1] };
    if ($least == $most) {
        return '' unless grep { $_->{scalar} } @all;
        return macro("$name(" . $taken->($most) . ')', $call->($most));
    }
    my $text = macro("$name(...)", "TN_OPS_CALL(${name}__, __VA_ARGS__)");
    for my $n (1 .. $most + 4) {
        $text .= $n < $least || $n > $most     # an error of the compiler that names the function
            ? macro("${name}__$n(...)", "($name)(__VA_ARGS__)")
            : macro("${name}__$n(" . $taken->($n) . ')', $call->($n));
    }
    $most_arguments = $most + 4 if $most_arguments < $most + 4;
    return $text;
}

sub macro
{
    my ($left, $right) = @_;
    return "#define $left $right\n" if length("#define $left $right") <= 100;
    return fold("#define ", '        ', $left, " \\\n") . " \\\n"
        . fold('    ', '        ', $right, " \\\n") . "\n";
}

sub wrapper
{
    my ($op, $inplace) = @_;
    my $name = "tn_$op->{wrapper}" . ($inplace ? '_' : '');
    my $into = $inplace && $op->{flags}{into};
    my @parameters = map { $_->{text} . (defined $_->{def} ? " TN_OPS_ELSE($_->{def})" : '') }
        parameters($op, $inplace);
    my ($list) = map { $_->{name} } grep { $_->{words}{list} } @{ $op->{in} };
    my @fill = map { $_->{name} } grep { !$_->{words}{list} } @{ $op->{in} };
    my $count = @{ $op->{in} };
    my $struct = "tn_$op->{name}_options";
    my @options = @{ $op->{options} };
    my $outs = outputs($op);
    my @added = reverse grep { $_->{since} } @options;
    @parameters = ('void') unless @parameters;
    my $returns = $outs != 1 ? 'tn_status ' : 'tn_tensor *';
    my $text = fold("TN_OPS_INLINE $returns$name(", ' ' x 8,
        join(', ', map { tr/ /\x01/r } @parameters) . ')');
    $text =~ tr/\x01/ /;
    $text .= "\n{\n";
    $text .= sprintf("    static tn_op_ref ref = { %s, %d, NULL };\n", quote($op->{name}),
        $op->{rev});
    my ($array, $n) = ('in', $count);
    my $behind = $list && @fill;    # whether the list comes after other inputs
    if ($behind) {
        $n = scalar(@fill) . " + n_$list";
        $text .= sprintf("    tn_tensor *few[%d + TN_MAX_DIMS];\n", scalar @fill);
        $text .= sprintf("    tn_tensor **in = tn_ops_inputs(%s, few, %d, %s, n_%s);\n",
            quote("$op->{name}: $list"), scalar @fill, $list, $list);
    } elsif ($list) {
        ($array, $n) = ($list, "n_$list");
    } elsif ($count) {
        $text .= "    tn_tensor *in[$count];\n";
    } else {
        ($array, $n) = ('NULL', 0);
    }
    $text .= "    tn_tensor *out[$outs];\n" if $outs > 1;
    $text .= "    tn_status status;\n" if $outs > 1 || ($behind && $outs == 0);
    $text .= "    tn_tensor *y;\n" if $behind && $outs == 1;
    my $pointer = @options ? '&all' : 'NULL';
    my $const = @added ? '' : 'const ';
    $text .= fold("    $const$struct all = { ", ' ' x 8,
        join(', ', '(uint32_t)sizeof all', map { $_->{name} } @options) . ' };') . "\n" if @options;
    $text .= "\n";
    if ($behind) {
        $text .= "    if (in == NULL)\n        return "
            . ($outs != 1 ? 'tn_error_last_code()' : 'NULL') . ";\n";
    }
    $text .= "    in[$_] = $fill[$_];\n" for 0 .. $#fill;
    $text .= "    tn_$op->{name}_options_fit(&all);\n" if @added;
    my $lookup = 'tn_op_lookup(&ref)';
    my $free = $behind ? "    tn_ops_inputs_free(in, few);\n" : '';
    my $keep = sub { $behind ? "    $_[0] = $_[1];\n${free}    return $_[0];\n"
                             : "    return $_[1];\n" };
    if ($outs == 0) {
        $text .= $keep->('status', "tn_op_call($lookup, $array, $n, $pointer, NULL, 0)");
    } elsif ($outs > 1) {
        my @names = map { $_->{name} } outputs($op);
        my $named = join(', ', @names[0 .. $#names - 1]) . " or $names[-1]";
        $text .= fold('    status = ', ' ' x 8,
            join(' || ', map { "$_\x01==\x01NULL" } @names)) =~ tr/\x01/ /r
            . "\n        ? tn_ops_no_place(" . quote("$op->{name}: $named") . ", out, $outs)"
            . "\n        : tn_op_call($lookup, $array, $n, $pointer, out, $outs);\n$free";
        $text .= "    if ($names[$_] != NULL)\n        *$names[$_] = out[$_];\n" for 0 .. $outs - 1;
        $text .= "    return status;\n";
    } elsif ($inplace) {
        $text .= $keep->('y', "tn_op_call1_into(&ref, $array, $n, $pointer, "
            . ($into ? 'into' : "${array}[0]") . ')');
    } else {
        $text .= $keep->('y', "tn_op_call1(&ref, $array, $n, $pointer)");
    }
    return $text . "}\n";
}

# Returns the option struct of an operator and its functions.
sub declaration
{
    my ($op) = @_;
    my ($struct, @options) = ("tn_$op->{name}_options", @{ $op->{options} });
    my ($text, $last) = ('', 0);
    if (@options) {
        $text .= "typedef struct $struct {\n"
            . "    uint32_t size;              /* sizeof($struct) */\n";
        for my $option (@options) {
            my $since = $option->{since} // 0;
            my $left = sprintf("    %s%s;", declare($option->{type}, $option->{name}),
                               $since > $last ? ' TN_OPTION_ADDED' : '');
            my $said = defined $option->{def} ? " (default $option->{def})" : '';
            $said .= " [since: $since]" if $since;
            $text .= fold(sprintf("%-32s/* ", $left), ' ' x 35, "$option->{help}$said */") . "\n";
            $last = $since;
        }
        $text .= "} $struct;\n";
        $text .= "#define TN_\U$op->{name}\E_OPTIONS { (uint32_t)sizeof($struct), "
            . join(', ', map { $_->{value} } @options) . " }\n\n";
    }
    $text .= shortening($op) if $last;
    $text .= fold('/* ', ' * ', $op->{math} . (defined $op->{help} ? ". $op->{help}" : '') . ' */')
        . "\n" . wrapper($op, 0) . "\n";
    if ($op->{flags}{into}) {
        $text .= "/* Like tn_$op->{wrapper}(), but writes into the existing tensor `into` and "
            . "returns it. */\n" . wrapper($op, 1) . "\n";
    } elsif ($op->{flags}{inplace}) {
        $text .= "/* Like tn_$op->{wrapper}(), but writes the result into "
            . "`$op->{in}[0]{name}` and returns it. */\n" . wrapper($op, 1) . "\n";
    }
    return $text;
}

# Returns the function that leaves added options out of `size` while they have their defaults.
sub shortening
{
    my ($op) = @_;
    my $struct = "tn_$op->{name}_options";
    my $text = "/* Leaves out of options->size what later versions added and the call does not "
        . "use, so\n * that older versions of the operator take the call. */\n"
        . "TN_OPS_INLINE void ${struct}_fit($struct *options)\n{\n"
        . "    const $struct own = TN_\U$op->{name}\E_OPTIONS;\n\n";
    for my $option (reverse grep { $_->{since} } @{ $op->{options} }) {
        my $name = $option->{name};
        $text .= "    if (memcmp(&options->$name, &own.$name, sizeof own.$name) != 0)\n"
            . "        return;\n"
            . "    options->size = (uint32_t)offsetof($struct, $name);\n";
    }
    return $text . "}\n\n";
}

my $notice = "Generated by sdk/operators/generate.pl from the .ops files there: edit these files.";

my $ops_h = <<"END";
/* SPDX-License-Identifier: MIT
 *
 * Option structs and wrappers of the standard operators.
 * $notice
 *
 * A wrapper returns a tensor that the innermost scope owns, or NULL on failure. If an input is NULL
 * because an earlier call failed, the wrapper fails without a new error. TN_NONE is an absent
 * optional input. Arguments at the end that have a default may be left out, as in C++: tn_sum(x),
 * tn_sum(x, TN_INTS(1)), tn_sum(x, TN_INTS(1), true). In C a macro of the same name does this;
 * (tn_sum) is the function. The structs of options are for kernels and for tn_op_call(), where
 * TN_<NAME>_OPTIONS initializes them. [scoped] */
#ifndef TENON_OPS_H
#define TENON_OPS_H

#include <math.h>
#include <string.h>
#include <tenon/op.h>

TN_BEGIN_DECLS

#define TN_OPS_INLINE TN_ATTR(unused) static inline

/* The default of a parameter, which may be left out. */
#ifdef __cplusplus
#define TN_OPS_ELSE(value) = value
#else
#define TN_OPS_ELSE(value)
#endif

/* Fails because a pointer to which a result is written is NULL. The results are NULL. */
TN_OPS_INLINE tn_status tn_ops_no_place(const char *who, tn_tensor **out, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = NULL;
    return tn_fail(TN_ERR_VALUE, "%s: no place for a result, got NULL; expected a pointer for each",
                   who);
}

/* Returns an array with space for `first` inputs, followed by the `n` tensors of `list`. It is
 * `few`, which has space for a list of TN_MAX_DIMS tensors, or allocated memory for a longer list.
 * Returns NULL and sets the error if `list` or `n` is invalid. */
TN_OPS_INLINE tn_tensor **tn_ops_inputs(const char *what, tn_tensor **few, int64_t first,
                                        tn_tensor *const *list, int64_t n)
{
    tn_tensor **in = few;

    if (n < 0 || n > INT32_MAX || (list == NULL && n > 0)) {
        (void)tn_fail(TN_ERR_VALUE,
                      "%s: wrong list, got %lld tensors%s; expected an array and its length",
                      what, (long long)n, list == NULL ? " and NULL" : "");
        return NULL;
    }
    if (n > TN_MAX_DIMS)
        in = (tn_tensor **)tn_malloc((size_t)(first + n) * sizeof *in);
    for (int64_t i = 0; in != NULL && i < n; i++)
        in[first + i] = list[i];
    return in;
}

TN_OPS_INLINE void tn_ops_inputs_free(tn_tensor **in, tn_tensor **few)
{
    if (in != few)
        tn_free(in);
}

END
my $layers_h = <<"END";
/* SPDX-License-Identifier: MIT
 *
 * The layers of the operators that have a line `layer` in their .ops file.
 * $notice */
#ifndef TN_LAYERS_FROM_OPERATORS_H
#define TN_LAYERS_FROM_OPERATORS_H

END
my $layers_c = <<"END";
/* SPDX-License-Identifier: MIT
 *
 * The layers of the operators that have a line `layer` in their .ops file.
 * $notice */
#include "helpers.h"

struct activation {
    bool inplace;
};

static const tn_option inplace_options[] = {
    TN_OPTION_ROW(struct activation, inplace, "False", "writes the result into the input",
                  TN_OPTION_KIND_BOOL, 0),
    TN_OPTION_END
};

static int64_t inplace_repr(tn_module *self, char *out, size_t size)
{
    const struct activation *s = tn_module_data(self);

    return tn_snprint(out, size, "%s", s->inplace ? "inplace=True" : "");
}

#define INPLACE \\
    .options = inplace_options, .data_size = sizeof(struct activation), .repr = inplace_repr
END
my $schema_h = <<"END";
/* SPDX-License-Identifier: MIT
 *
 * The operator schema as data for definitions such as TN__OP(relu, .infer = ...), and the list of
 * operators. $notice */
#ifndef TN_OPS_SCHEMA_H
#define TN_OPS_SCHEMA_H

#include <tenon/plugin.h>

END
my $wrappers_h = <<"END";
/* SPDX-License-Identifier: MIT
 *
 * The functions of <tenon/ops.h>, for code that prints calls of operators. $notice */
#ifndef TN_TOOLS_WRAPPERS_H
#define TN_TOOLS_WRAPPERS_H

typedef struct wrapper {
    const char *op, *function; /* the function without tn_ */
    int revision;
    int needed; /* that many of the first options have no default */
} wrapper;

static const wrapper wrappers[] = {
END
my $doc = <<"END";
# Operators

$notice

Every operator has a function `tn_NAME(inputs, options)`, declared in `<tenon/ops.h>`. Arguments at
the end that have a default may be left out:

```c
y = tn_sum(x);
y = tn_sum(x, TN_INTS(1), true);                /* dims, keepdim */
y = tn_add(a, b, -0.5);                         /* a - 0.5 b */
y = tn_conv2d(x, weight, TN_NONE, TN_INTS(2));
```

An operator with several results takes pointers to them before the options that have a default:
`tn_topk(x, 5, &values, &indices)`. In C the value `None` is `INT64_MIN` for an int, `NAN` for a
float, `NULL` for a string, `tn_none_ints()` for a list, `TN_DTYPE_AUTO` for a dtype and
`tn_scalar_none()` for a scalar; an empty list is `tn_no_ints()`.

If the flags of an operator include `inplace`, `tn_NAME_(...)` writes into its first input and
returns it: `tn_add_(a, b)`. A kernel finds all options in the struct `tn_NAME_options`, to which
`call->options` points. A `scalar` is a number of any kind (`tn_scalar`). Types: `arith` is int,
float and complex; `nograd` inputs get no gradient. Flags that begin with `autocast` say what
autocast does with the inputs: `low`, `f32`, `widest`, `refused`; with `host` on devices that
compute in the memory of the host, such as cpu, otherwise on the others.
[operator-results.md](operator-results.md) lists the dtypes and shapes of the results.
END
my (@json, %list, @layers);
my $macros = <<'END';
/* ---- calls in C ---------------------------------------------------------------------------- */

/* These macros add the arguments that are left out. An argument of type tn_scalar may be any C
 * number or a tn_scalar: tn_mul_scalar(x, 2), tn_mul_scalar(x, 2.5). C++ does both by itself. As in
 * every macro, an argument that contains commas needs parentheses: ((tn_ints){ at, n }). */
#ifndef __cplusplus
END

for my $family (@families) {
    $doc .= "\n## \u$family->{name}\n\n$family->{title}\n";
    $ops_h .= "/* ---- $family->{name} " . '-' x (80 - length $family->{name}) . " */\n\n";
    for my $op (@{ $family->{ops} }) {
        my $name = $op->{name};
        my $struct = "tn_${name}_options";
        my @options = @{ $op->{options} };

        # the header
        $ops_h .= by_target($op, \&declaration);
        $macros .= by_target($op, sub {
            my ($one) = @_;
            return macros($one, 0)
                . ($op->{flags}{into} || $op->{flags}{inplace} ? macros($one, 1) : '');
        });

        # the data
        for my $side ('in', 'out') {
            next unless @{ $op->{$side} };
            $schema_h .= "TN_ATTR(unused) static const tn_operand "
                . "tn_schema_${name}_${side}\[] = {\n";
            for my $operand (@{ $op->{$side} }) {
                my $flags = join(' | ', map { $OPERAND{$_} } sort keys %{ $operand->{words} })
                    || '0';
                $flags .= " | TN_OPERAND_SINCE($operand->{since})" if $operand->{since};
                $schema_h .= sprintf("    { %s, %s, %s },\n", quote($operand->{name}), $flags,
                    $operand->{mask});
            }
            $schema_h .= "};\n";
        }
        $schema_h .= "typedef void tn_${name}_options; /* no options */\n" unless @options;
        if (@options) {
            $schema_h .= "TN_ATTR(unused) static const tn_option tn_schema_${name}_options[] = {\n";
            for my $option (@options) {
                my $required = !defined $option->{def};
                $schema_h .= sprintf("    TN_OPTION_ROW_SINCE(%s, %s, %s, %s, "
                                     . "TN_OPTION_KIND_%s, %s, %s),\n", $struct,
                                     $option->{name}, $required ? 'NULL' : quote($option->{def}),
                                     quote($option->{help}), uc $option->{type},
                                     $required         ? 'TN_OPTION_REQUIRED'
                                     : $option->{none} ? 'TN_OPTION_OPTIONAL'
                                                       : '0', $option->{since} // 0);
            }
            $schema_h .= "    TN_OPTION_END\n};\n";
            $schema_h .= "TN_ATTR(unused) static const $struct tn_schema_${name}_defaults = "
                . "TN_\U$name\E_OPTIONS;\n";
        }
        my @pieces = (
            '.name = ' . quote($name), '.math = ' . quote($op->{math}),
            '.help = ' . quote($op->{help} // ''), ".revision = $op->{rev}",
            '.flags = ' . (join(' | ', map { $FLAG{$_} } sort keys %{ $op->{flags} }) || '0'),
            '.inputs = ' . (@{ $op->{in} } ? "tn_schema_${name}_in" : 'NULL'),
            '.outputs = ' . (@{ $op->{out} } ? "tn_schema_${name}_out" : 'NULL'),
            '.n_inputs = ' . @{ $op->{in} }, '.n_outputs = ' . @{ $op->{out} });
        push @pieces, ".options = tn_schema_${name}_options",
            ".defaults = &tn_schema_${name}_defaults",
            ".options_size = sizeof($struct)" if @options;
        push @pieces, ".dispatch_input = $op->{dispatch_input}", ".save_in = $op->{save_in}u",
            ".save_out = $op->{save_out}u";
        push @pieces, ".save_for = (const uint32_t[]){ "
            . join(', ', map { sprintf '%#xu', $_ } @{ $op->{save_for} }) . " }" if $op->{save_for};
        $schema_h .= "#define TN_SCHEMA_$name \\\n    " . join(", \\\n    ", @pieces) . "\n\n";

        push @{ $list{ $family->{plugin} } }, $name;
        if ($op->{layer}) {
            my $layer = $op->{layer};
            push @layers, $name;
            $layers_c .= "\nstatic tn_tensor *${name}_forward(tn_module *self, tn_tensor *x)\n{\n";
            $layers_c .= $layer->{inplace}
                ? "    const struct activation *s = tn_module_data(self);\n\n"
                . "    return s->inplace ? tn_$op->{wrapper}_(x) : tn_$op->{wrapper}(x);\n}\n"
                : "    (void)self;\n    return tn_$op->{wrapper}(x);\n}\n";
            $layers_c .= "\nstatic const char *${name}_pointwise(tn_module *self)\n"
                . "{\n    (void)self;\n"
                . "    return \"$op->{name}\";\n}\n" if $op->{flags}{pointwise};
            $layers_c .= "\nLAYER($name, \"$layer->{name}\",";
            $layers_c .= " INPLACE," if $layer->{inplace};
            $layers_c .= " .pointwise = ${name}_pointwise," if $op->{flags}{pointwise};
            $layers_c .= " .forward = ${name}_forward,\n      .help = " . quote($op->{math})
                . ");\n";
        }

        # for people
        my %text = map { $_->{name} => $_->{def} } @options;
        my @shown = map { !defined $_->{def} ? $_->{name}
                          : "$_->{name}=" . ($text{ $_->{name} } // 'TN_NONE') }
            parameters($op, 0);
        my $given = join(', ', map { $_->{name} } @{ $op->{out} });
        $doc .= sprintf("\n### %s%s\n\n`%stn_%s(%s)`\n\n%s\n", $name,
                        $op->{rev} > 1 ? " (revision $op->{rev})" : '',
                        $given ne '' ? "$given = " : '', $op->{wrapper},
                        join(', ', @shown), "    $op->{math}");
        $doc .= "\n$op->{help}\n" if defined $op->{help};
        my @notes = sort keys %{ $op->{flags} };
        $doc .= "\nFlags: @notes.\n" if @notes;
        $doc .= "\nThe dtype of `$op->{dispatch}` chooses the kernel.\n" if defined $op->{dispatch};
        if (@{ $op->{in} } || @options) {
            $doc .= "\n| | type | default | |\n|---|---|---|---|\n";
            for my $operand (@{ $op->{in} }) {
                my @words = sort keys %{ $operand->{words} };
                $doc .= "| $operand->{name} | $operand->{dtypes} tensor | | @words |\n";
            }
            for my $option (@options) {
                $doc .= sprintf("| %s | %s | %s | %s |\n", $option->{name}, $option->{type},
                                $option->{def} // '',
                                $option->{help} =~ s/\|/\\|/gr);
            }
        }

        # for the C form of graphs
        $wrappers_h .= sprintf("    { %s, %s, %d, %d },\n", quote($name), quote($op->{wrapper}),
                               $op->{rev}, scalar grep { $_->{arg} } @options);

        # for bindings
        push @json, {
            name => $name, revision => $op->{rev}, family => $family->{name},
            wrapper => "tn_$op->{wrapper}",
            math => $op->{math}, help => $op->{help} // '',
            flags => [ sort keys %{ $op->{flags} } ],
            since => ($op->{since} // 0) + 0,
            inputs => [ map { { name => $_->{name}, since => ($_->{since} // 0) + 0,
                                dtypes => [ split /,/, $_->{dtypes} ],
                                flags => [ sort keys %{ $_->{words} } ] } } @{ $op->{in} } ],
            outputs => [ map { $_->{name} } @{ $op->{out} } ],
            struct => @options ? "tn_${name}_options" : undef,
            options => [ map { { name => $_->{name}, type => $_->{type}, help => $_->{help},
                                 since => ($_->{since} // 0) + 0,
                                 default => $_->{def},
                                 none => $_->{none} ? JSON::PP::true : JSON::PP::false,
                                 required => defined $_->{def} ? JSON::PP::false : JSON::PP::true }
                             } @options ],
            save => [ @{ $op->{save} } ], dispatch => $op->{dispatch},
        };
    }
}
my @numbers = reverse 0 .. $most_arguments;
$macros .= <<"END";
#define TN_OPS_CALL(name, ...) TN_OPS_JOIN(name, TN_OPS_COUNT(__VA_ARGS__))(__VA_ARGS__)
#define TN_OPS_JOIN(name, n) TN_OPS_JOIN_(name, n)
#define TN_OPS_JOIN_(name, n) name##n
END
$macros .= macro('TN_OPS_COUNT(...)', 'TN_OPS_COUNT_(__VA_ARGS__, ' . join(', ', @numbers) . ')')
    . macro('TN_OPS_COUNT_(' . join(', ', (map { "a$_" } 1 .. $most_arguments), 'n, ...)'), 'n');
$ops_h .= $macros . "#endif\n\nTN_END_DECLS\n#endif\n";
for my $plugin (sort keys %list) {
    my $macro = 'TN_SCHEMA_OPS' . ($plugin eq 'ops' ? '' : "_\U$plugin");
    $schema_h .= "/* X(name) for every operator of the plugin $plugin */\n"
        . fold("#define $macro(X) \\\n    ", '    ',
        join(' ', map { "X($_)" } @{ $list{$plugin} }), " \\\n") . "\n\n";
}
$schema_h .= "#endif\n";
$layers_h .= fold("/* X(name) for each */\n#define LAYERS_FROM_OPERATORS(X) \\\n    ", '    ',
    join(' ', map { "X($_)" } @layers), " \\\n")
    . "\n\n#endif\n";

write_file('sdk/include/tenon/ops.h', $ops_h);
write_file('plugins/ops/schema.h', $schema_h);
write_file('plugins/layers/from_operators.h', $layers_h);
write_file('plugins/layers/from_operators.c', $layers_c);
write_file('docs/reference/operators.md', $doc);
write_file('tools/wrappers.h', $wrappers_h . "};\n\n#endif\n");
# The types of options: the C type of the member, and the value for None. (The first
# member of an options struct is a uint32_t with the struct's size.)
my %types = map {
    $_ => { c => $C_TYPE{$_}, none => scalar eval { (default_of($_, 'None'))[0] } }
} keys %C_TYPE;
write_file('sdk/operators.json',
           JSON::PP->new->canonical->pretty->encode({ operators => \@json, types => \%types }));
