#!/usr/bin/perl
# SPDX-License-Identifier: MIT
#
# Generates these files from the public headers, so that each function is declared only once:
#
#   B/sdk/include/tenon/host.h     for plugins: the function tables, and inline calls through them
#   B/lib/library/host_tables.c   for the core: the tables, plain and checking (TENON_CHECK=1)
#   B/lib/library/kind_list.c     for the core: the list of kinds of contributions, from abi.h
#   B/lib/libtenon.sym            the symbols that libtenon exports
#   B/docs/reference/api.md        every function with its comment and tags
#   B/sdk/api.json                 functions, enums, structs, callbacks and constants, for bindings
#
#   perl generate.pl --srcdir S --outdir B
#
# Only headers with a line `tenon-interface: ID REVISION` are read. A prototype begins a line with
# TN_API or TN_PROGRAM and ends with `;`. The comment above it, with no empty line between, is its
# contract; several prototypes may share one. base.h lists the tags. If a header breaks these rules,
# the run fails with file and line.

use strict;
use warnings;
use File::Basename qw(dirname);
use File::Path qw(make_path);
use FindBin ();
use Getopt::Long qw(GetOptions);

require "$FindBin::Bin/declarations.pl";
require "$FindBin::Bin/json.pl";

my ($srcdir, $outdir);
GetOptions('srcdir=s' => \$srcdir, 'outdir=s' => \$outdir) && defined $srcdir && defined $outdir
    or die "usage: perl generate.pl --srcdir DIR --outdir DIR\n";

my %thread    = map { $_ => 1 } qw(stream main callback); # without one: any thread
my %ownership = map { $_ => 1 } qw(owned scoped borrowed static);
my %names     = map { $_ => 1 } qw(null-ok inout taken); # with names of parameters

# The types of objects that may be NULL in a function with the tag [null-through].
my $through = qr/\b(?:tn_tensor|tn_module|tn_optimizer|tn_scheduler|tn_state|tn_graph|tn_node|tn_comm|tn_work|tn_dataset|tn_loader)\s*\*\s*$/;

my $bad = 0;
sub complain {
    my ($file, $line, $text) = @_;
    print STDERR "$file:$line: $text\n";
    $bad = 1;
}

# ---- reading -------------------------------------------------------------------------------------

# The names of types that are pointers to functions.
my %callback;
for my $path (glob "$srcdir/sdk/include/tenon/*.h") {
    open my $in, '<', $path or die "$path: $!\n";
    my $text = do { local $/; <$in> };
    $callback{$1} = 1 while $text =~ /^typedef\s[\w\s*]*?\(\*(tn_\w+)\)\(/mg;
}

# Splits "const tn_view *const *in" into type and name; also splits a pointer to a function.
sub parameter {
    my ($text) = @_;
    $text =~ s/^\s+|\s+$//g;
    $text =~ s/\s+/ /g;
    my ($name) = $text =~ /\(\*\s*(\w+)\)/;
    return { text => $text, name => $name, type => $text, function => 1, pointer => 1 } if defined $name;
    return undef unless $text =~ /^(.*?[\s*])(\w+)((?:\[\w*\])*)$/;
    my ($type, $array) = ($1, $3);
    $name = $2;
    $type =~ s/\s+$//;
    my $pointer = $type =~ /\*/ || $array ne '' || $callback{$type};
    return { text => $text, name => $name, type => $type . $array, pointer => $pointer ? 1 : 0 };
}

# Returns the text of a comment as one paragraph, and its tags.
sub contract {
    my ($file, $line, $comment) = @_;
    my %tags = (null_ok => [], inout => [], taken => [], array => {});
    while ($comment =~ /(?:^|(?<=\s))\[([a-z][a-z-]*)(?::\s*([\w,\s]+?))?\]/g) {
        my ($tag, $names) = ($1, $2);
        if ($thread{$tag}) {
            complain($file, $line, "two thread tags, [$tags{thread}] and [$tag]") if $tags{thread};
            $tags{thread} = $tag;
        } elsif ($ownership{$tag}) {
            complain($file, $line, "two ownership tags, [$tags{ownership}] and [$tag]") if $tags{ownership};
            $tags{ownership} = $tag;
        } elsif ($names{$tag} && defined $names) {
            push @{ $tags{ $tag =~ tr/-/_/r } }, split /[\s,]+/, $names;
        } elsif ($tag eq 'array' && defined $names) {
            for my $pair (split /\s*,\s*/, $names) {
                if ($pair =~ /^(\w+)\s+(\w+)$/) { $tags{array}{$1} = $2 }
                else { complain($file, $line, "[array: $pair] is not NAME COUNT") }
            }
        } elsif ($tag eq 'null-through' && !defined $names) {
            $tags{null_through} = 1;
        } elsif ($tag eq 'since' && defined $names && $names =~ /^\d+$/) {
            $tags{since} = $names + 0;
        } else {
            complain($file, $line, "the tag [$tag] is not in the list of base.h");
        }
    }
    $comment =~ s/(?:^|(?<=\s))\[[a-z][a-z-]*(?::\s*[\w,\s]+?)?\]//g;
    $comment =~ s/\s+/ /g;
    $comment =~ s/^ | $//g;
    return ($comment, \%tags);
}

sub prototype_of {
    my ($file, $line, $kind, $text, $comment) = @_;
    $text =~ s/\s+/ /g;
    unless ($text =~ /^(.*?[\s*])(tn_\w+)\s*\((.*)\)\s*$/) {
        complain($file, $line, "cannot read the prototype: $text");
        return undef;
    }
    my ($result, $name, $list) = ($1, $2, $3);
    $result =~ s/^\s+|\s+$//g;
    my ($words, $tags) = contract($file, $line, defined $comment ? $comment : '');
    complain($file, $line, "$name has no comment above it that says what it does")
        unless defined $comment && $comment =~ /\S/;
    $tags->{thread} //= 'any-thread';
    my (@parameters, $variadic);
    for my $piece (Declarations::parameters($list)) {
        if ($piece eq '...') { $variadic = 1; next }
        my $p = parameter($piece);
        unless ($p) {
            complain($file, $line, "$name: parameter without a name: $piece");
            next;
        }
        push @parameters, $p;
    }
    my %known = map { $_->{name} => 1 } @parameters;
    return { name => $name, result => $result, parameters => \@parameters, variadic => $variadic ? 1 : 0, words => $words,
             tags => $tags, program => $kind eq 'TN_PROGRAM' ? 1 : 0, file => $file, line => $line, known => \%known };
}

sub read_header {
    my ($path, $shown) = @_;
    open my $in, '<', $path or die "$path: $!\n";
    my @lines = <$in>;
    close $in;
    my $id;
    for (@lines) { $id = [ $1, $2 ] if !$id && /tenon-interface:\s*(\S+)\s+(\d+)/ }
    my (@functions, $comment, $heading, @group);
    for (my $i = 0; $i < @lines; $i++) {
        my $line = $lines[$i];
        if ($line =~ /^\s*$/) {
            undef $comment;
        } elsif ($line =~ m{^/\* ---- (.*?) -+ \*/}) {
            $heading = ucfirst $1;
            undef $comment;
        } elsif ($line =~ m{^/\*}) {
            my $text = $line;
            $text .= $lines[ ++$i ] while $text !~ m{\*/} && $i < $#lines;
            $text =~ s{^/\*|\*/\s*$}{}g;
            $text =~ s{^\s*\*( |$)}{}mg;
            $comment = $text;
        } elsif ($line =~ /^typedef struct/) {
            undef $comment;
        } elsif ($line =~ /^(TN_API|TN_PROGRAM)\s+(.*)$/s) {
            my ($kind, $text, $at) = ($1, $2, $i + 1);
            unless ($id) {
                complain($shown, $at, "a $kind function in a header without a tenon-interface line");
                next;
            }
            $text .= $lines[ ++$i ] while $text !~ /;/ && $i < $#lines;
            $text =~ s/;.*//s;
            my $f = prototype_of($shown, $at, $kind, $text, $comment) or next;
            $f->{heading} = $heading;
            push @functions, $f;
        }
    }
    # A macro with the name of a function, which converts its arguments.
    my %macro = map { /^#define (tn_\w+)\(/ ? ($1 => 1) : () } @lines;
    $_->{macro} = $macro{ $_->{name} } for @functions;
    # A name in a tag of a shared comment must be a parameter of at least one of its functions.
    my %said;
    for my $f (@functions) {
        for my $tag (sort keys %names) {
            for my $name (@{ $f->{tags}{ $tag =~ tr/-/_/r } }) {
                my $key = "$f->{words}|$tag $name";
                $said{$key} = { f => $f, name => $name, tag => $tag, found => 0 } unless $said{$key};
                $said{$key}{found} = 1 if $f->{known}{$name};
            }
        }
        for my $name (sort keys %{ $f->{tags}{array} }) {
            my $key = "$f->{words}|array $name";
            $said{$key} = { f => $f, name => $name, tag => 'array', found => 0 } unless $said{$key};
            $said{$key}{found} = 1 if $f->{known}{$name} && $f->{known}{ $f->{tags}{array}{$name} };
        }
    }
    for my $s (sort { $a->{f}{line} <=> $b->{f}{line} } values %said) {
        complain($shown, $s->{f}{line}, "$s->{f}{name}: [$s->{tag}: $s->{name}] names no parameter") unless $s->{found};
    }
    # A newer function before an older one would change the older one's place in the table.
    my $newest = 0;
    for my $f (@functions) {
        my $since = since($f);
        complain($shown, $f->{line}, "$f->{name} is in ABI minor $since and follows one of $newest: new functions are declared last")
            if $since < $newest;
        $newest = $since if $since > $newest;
    }
    my %have = map { $_->{name} => 1 } @functions;
    for my $f (grep { $_->{variadic} } @functions) {
        complain($shown, $f->{line}, "$f->{name} takes `...` and has no sibling $f->{name}v with a va_list")
            unless $have{"$f->{name}v"};
    }
    return undef unless $id;
    (my $short = $id->[0]) =~ s/^tenon\.//;
    $short =~ s/\W/_/g;
    return { id => $id->[0], revision => $id->[1], short => $short, header => $shown, functions => \@functions };
}

# The headers in the order in which <tenon/plugin.h> includes them.
my @order = qw(base value tensor op grad module container lazy state train data graph comm runtime);
my %place = map { $order[$_] => $_ } 0 .. $#order;
my @interfaces;
for my $path (glob "$srcdir/sdk/include/tenon/*.h") {
    (my $shown = $path) =~ s{.*/(sdk/include/)}{$1};
    my $interface = read_header($path, $shown) or next;
    push @interfaces, $interface;
}
@interfaces = sort {
    my ($x, $y) = map { exists $place{ $_->{short} } ? $place{ $_->{short} } : 99 } $a, $b;
    $x <=> $y || $a->{short} cmp $b->{short}
} @interfaces;
die "no header with a tenon-interface line under $srcdir/sdk/include/tenon\n" unless @interfaces;
my %seen;
for my $f (map { @{ $_->{functions} } } @interfaces) {
    complain($f->{file}, $f->{line}, "$f->{name} is declared twice, first at $seen{$f->{name}}") if $seen{ $f->{name} };
    $seen{ $f->{name} } = "$f->{file}:$f->{line}";
}
exit 1 if $bad;

# ---- writing -------------------------------------------------------------------------------------

sub write_file {
    my ($name, $text) = @_;
    my $path = "$outdir/$name";
    make_path(dirname($path));
    open my $out, '>', "$path.tmp" or die "$path.tmp: $!\n";
    print {$out} $text;
    close $out or die "$path.tmp: $!\n";
    rename "$path.tmp", $path or die "$path: $!\n";
}

# Returns the ABI minor version that added a function; 0: the first version.
sub since { return $_[0]{tags}{since} // 0 }

# Returns the table size that a plugin for TN_TARGET needs: without the functions that are newer.
sub needed_size {
    my ($interface) = @_;
    my @functions = in_table($interface);
    my $text = "sizeof(struct tn_$interface->{short}_table)";
    for my $i (reverse 1 .. $#functions) {
        my $since = since($functions[$i]);
        $text = "TN_TARGET < $since ? $i * sizeof(void (*)(void)) : $text" if $since > since($functions[ $i - 1 ]);
    }
    return "(uint32_t)($text)";
}

sub in_table { return grep { !$_->{variadic} && !$_->{program} } @{ $_[0]{functions} } }
sub for_plugins { return grep { !$_->{program} } @{ $_[0]{functions} } }
sub list_of { my ($f) = @_; return @{ $f->{parameters} } ? join(', ', map { $_->{text} } @{ $f->{parameters} }) : 'void' }
sub names_of { my ($f) = @_; return join ', ', map { $_->{name} } @{ $f->{parameters} } }
sub spaced { my ($type) = @_; return $type =~ /\*$/ ? $type : "$type " }

sub table_struct {
    my ($interface) = @_;
    my $text = "struct tn_$interface->{short}_table {\n";
    for my $f (in_table($interface)) {
        $text .= '    ' . spaced($f->{result}) . "(*$f->{name})(" . list_of($f) . ");\n";
    }
    return $text . "};\n";
}

sub host_h {
    my $text = <<'END';
/* SPDX-License-Identifier: MIT
 *
 * Generated from the public headers by sdk/api/generate.pl; do not edit. The functions of the host as a plugin
 * sees them: a table of function pointers for each interface, and each TN_API function as an inline function that
 * calls through its table. */
#ifndef TENON_PLUGIN_H
#include <tenon/plugin.h>
#endif
#ifndef TENON_HOST_H
#define TENON_HOST_H

TN_BEGIN_DECLS

END
    $text .= "/* $_->{id}, revision $_->{revision} */\n" . table_struct($_) . "\n" for @interfaces;
    $text .= "/* The tables of the host, set by the first query. TN_PLUGIN defines this variable, hidden, once in each plugin. */\n";
    $text .= "struct tn_host_links {\n    const tn_host_info *host;\n";
    $text .= "    const struct tn_$_->{short}_table *$_->{short};\n" for @interfaces;
    $text .= "};\nextern TN_HIDDEN struct tn_host_links tn_host_links;\n\n";
    for my $interface (@interfaces) {
        $text .= "/* ---- $interface->{id} ---- */\n\n";
        for my $f (for_plugins($interface)) {
            my $void = $f->{result} eq 'void';
            my $since = since($f);
            my $name = $f->{macro} ? "($f->{name})" : $f->{name};
            my $declared = 'TN_API ' . spaced($f->{result}) . "$name(" . list_of($f) . ($f->{variadic} ? ', ...' : '') . ')';
            my $call = "tn_host_links.$interface->{short}->$f->{name}";
            $text .= "#if TN_TARGET < $since /* added after the ABI minor version that the plugin is for */\n#pragma GCC poison $f->{name}\n#else\n" if $since;
            if ($f->{variadic}) {
                my $last = $f->{parameters}[-1]{name};
                $text .= "$declared\n{\n    va_list args_;\n";
                $text .= '    ' . spaced($f->{result}) . "result_;\n" unless $void;
                $text .= "    va_start(args_, $last);\n    " . ($void ? '' : 'result_ = ') . "${call}v(" . names_of($f) . ", args_);\n";
                $text .= "    va_end(args_);\n" . ($void ? '' : "    return result_;\n") . "}\n";
            } else {
                $text .= "$declared\n{\n    " . ($void ? '' : 'return ') . "$call(" . names_of($f) . ");\n}\n";
            }
            $text .= "#endif\n" if $since;
        }
        $text .= "\n";
    }
    $text .= "/* Returns the interfaces that this plugin was compiled against. */\nTN_API const tn_interface_need *tn_plugin_needs(void)\n{\n";
    $text .= "    static const tn_interface_need needs[] = {\n";
    $text .= "        { \"$_->{id}\", $_->{revision}, $_->{revision}, " . needed_size($_) . ", 0 },\n" for @interfaces;
    $text .= "        { NULL, 0, 0, 0, 0 }\n    };\n    return needs;\n}\n";
    $text .= <<'END';

/* Fills an error record with the texts that follow `plugin`, of which NULL is the last, and returns `code`. Does not
 * call the host, so that it can be used before the tables are there. */
TN_API tn_status tn_plugin_refuse(tn_error *error, tn_status code, const char *plugin, ...)
{
    size_t length = 0, room = sizeof error->message - 1;
    const char *text;
    va_list texts;
    if (!error)
        return code;
    error->code = code;
    error->native = 0;
    for (; length + 1 < sizeof error->plugin && plugin && plugin[length]; length++)
        error->plugin[length] = plugin[length];
    error->plugin[length] = 0;
    length = 0;
    va_start(texts, plugin);
    while ((text = va_arg(texts, const char *)) != NULL)
        for (; length < room && *text; text++)
            error->message[length++] = *text;
    va_end(texts);
    error->message[length] = 0;
    return code;
}

/* A number as text, for tn_plugin_refuse. */
struct tn_plugin_number {
    char text[11];
};

TN_API struct tn_plugin_number tn_plugin_number(uint32_t value)
{
    struct tn_plugin_number number;
    uint32_t rest = value;
    int length = 1;
    while ((rest /= 10) != 0)
        length++;
    number.text[length] = 0;
    for (; length > 0; value /= 10)
        number.text[--length] = (char)('0' + value % 10);
    return number;
}

/* Returns the table of an interface. Returns NULL and fills `error` if the host does not offer the interface. A
 * draft (revision 0) must have exactly the size that was compiled in; a released table may be larger. */
TN_API const void *tn_plugin_table(const tn_host_info *host, const tn_interface_need *need, const char *plugin,
                                   tn_error *error)
{
    uint32_t revision = 0, size = 0;
    const void *table = host->interface_find(need->id, need->min, need->max, &revision, &size);
    if (!table) {
        tn_plugin_refuse(error, TN_ERR_VERSION, plugin,
                         "the host does not offer the revision that this plugin was compiled for, of interface ",
                         need->id, (const char *)NULL);
        return NULL;
    }
    if (revision == 0 ? size != need->size : size < need->size) {
        struct tn_plugin_number got = tn_plugin_number(size), expected = tn_plugin_number((uint32_t)need->size);
        tn_plugin_refuse(error, TN_ERR_VERSION, plugin,
                         revision == 0 ? "compile the plugin against the headers of this host, which has "
                                         "another draft of interface "
                                       : "compile the plugin with -DTN_TARGET and the minor version of this host, which is "
                                         "older and has fewer functions of interface ",
                         need->id, ", got ", got.text, " bytes; expected ", expected.text, (const char *)NULL);
        return NULL;
    }
    return table;
}

/* Checks the arguments of the query. */
TN_API tn_status tn_plugin_check_host(const tn_plugin *plugin, const tn_host_info *host, const tn_plugin_info *out,
                                      tn_error *error)
{
    const uint32_t least = (uint32_t)(offsetof(tn_plugin_info, needs) + sizeof out->needs);
    struct tn_plugin_number got, expected;
    if (!host || !out || host->head.kind != TN_KIND_tn_host_info || out->head.kind != TN_KIND_tn_plugin_info ||
        !TN_HAS(host, tn_host_info, interface_find) || !host->interface_find)
        return tn_plugin_refuse(error, TN_ERR_VALUE, plugin->id, "the caller of the query is not a Tenon host",
                                (const char *)NULL);
    got = tn_plugin_number(host->head.abi_major);
    expected = tn_plugin_number(TN_ABI_MAJOR);
    if (host->head.abi_major != TN_ABI_MAJOR)
        return tn_plugin_refuse(error, TN_ERR_VERSION, plugin->id,
                                "the host has another ABI than this plugin was compiled for, got ", got.text,
                                " from version ", host->version, "; expected ", expected.text, (const char *)NULL);
    if (tn_host_links.host && tn_host_links.host != host)
        return tn_plugin_refuse(error, TN_ERR_REFUSED, plugin->id,
                                "this plugin already belongs to another copy of libtenon in this process; link one "
                                "copy only: version of the first ",
                                tn_host_links.host->version, (const char *)NULL);
    got = tn_plugin_number(out->head.size);
    expected = tn_plugin_number(least);
    if (!TN_HAS(out, tn_plugin_info, needs))
        return tn_plugin_refuse(error, TN_ERR_VERSION, plugin->id, "the host's tn_plugin_info is too short, got ",
                                got.text, " bytes; expected at least ", expected.text, (const char *)NULL);
    return TN_OK;
}

/* The body of the exported query function: fetches all tables from the host, then describes the plugin in `out`. */
TN_API tn_status tn_plugin_export(const tn_plugin *plugin, const tn_build_facts *build, const tn_host_info *host,
                                  tn_plugin_info *out, tn_error *error)
{
    const tn_interface_need *needs = tn_plugin_needs();
    struct tn_host_links links;
    uint32_t limit;
    tn_status status = tn_plugin_check_host(plugin, host, out, error);
    if (status != TN_OK)
        return status;
    links.host = host;
END
    my $n = 0;
    for (@interfaces) {
        $text .= "    links.$_->{short} =\n        (const struct tn_$_->{short}_table *)tn_plugin_table(host, &needs[$n], plugin->id, error);\n";
        $text .= "    if (!links.$_->{short})\n        return TN_ERR_VERSION;\n";
        $n++;
    }
    $text .= <<'END';
    if (!tn_host_links.host)
        tn_host_links = links;
    limit = out->head.size;
    out->plugin = plugin;
    out->build = build;
    out->needs = needs;
    out->head.size = limit < (uint32_t)sizeof *out ? limit : (uint32_t)sizeof *out;
    out->head.abi_major = TN_ABI_MAJOR;
    out->head.abi_minor = TN_ABI_MINOR;
    return TN_OK;
}

TN_END_DECLS
#endif
END
    return $text;
}

# ---- the core's side -----------------------------------------------------------------------------

# Returns what a refused call returns.
sub nothing_of {
    my ($type) = @_;
    return undef if $type eq 'void';
    return 'tn_error_last_code()' if $type eq 'tn_status';
    return 'NULL' if $type =~ /\*$/;
    return 'false' if $type eq 'bool';
    return '__builtin_nan("")' if $type eq 'double';
    return 'TN_DTYPE_AUTO' if $type eq 'tn_dtype';
    return '-1' if $type =~ /^(?:int64_t|int32_t|int)$/;
    return '0' if $type =~ /^(?:size_t|uint\d+_t)$/;
    return "($type){ 0 }";
}

# Returns the checks of the arguments: pairs of a condition and the call that then fails; without a condition, the call of a
# function that says whether the argument is acceptable.
sub checks_of {
    my ($f) = @_;
    my %null_ok = map { $_ => 1 } @{ $f->{tags}{null_ok} };
    my @parameters = @{ $f->{parameters} };
    my @checks;
    my $who = sub { "\"$f->{name}\"" . join('', map { ", \"$_\"" } @_) . ', __builtin_return_address(0))' };
    push @checks, [ '', 'tn__boundary_main(' . $who->() ] if $f->{tags}{thread} eq 'main';
    for my $i (0 .. $#parameters) {
        my $p = $parameters[$i];
        my $name = $p->{name};
        if ($p->{type} eq 'tn_ints') {
            push @checks, [ "$name.at == NULL && $name.count > 0", 'tn__boundary_no_array(' . $who->($name) ];
        } elsif ($p->{pointer}) {
            my $may = $null_ok{$name} || ($f->{tags}{null_through} && $p->{type} =~ $through);
            my $length = $f->{tags}{array}{$name};
            if (defined $length) {
                push @checks, [ "$name == NULL && (int64_t)$length > 0", 'tn__boundary_no_array(' . $who->($name) ];
            } elsif (!$may) {
                push @checks, [ "$name == NULL", 'tn__boundary_no_' . ($p->{type} =~ $through ? 'object' : 'pointer') . '(' . $who->($name) ];
            }
            push @checks, [ '', "tn__boundary_tensor($name, " . $who->($name) ] if $p->{type} =~ /^(?:const )?tn_tensor \*$/;
            # A list of tensors. A list that may be NULL has the length of the list before it.
            if ($p->{type} eq 'tn_tensor *const *') {
                my ($next) = grep { $_->{type} eq 'int64_t' } @parameters[ $i + 1 .. $#parameters ];
                $length //= $next->{name} if $next;
                push @checks, [ '', "tn__boundary_tensors($name, $length, " . $who->($name) ] if defined $length;
            }
        }
    }
    return @checks;
}

sub host_tables_c {
    my $text = <<'END';
/* SPDX-License-Identifier: MIT
 *
 * Generated from the public headers by sdk/api/generate.pl; do not edit. The tables of functions that plugins
 * receive, and the tables for TENON_CHECK=1, whose functions check the arguments first. */
#include "core/boundary/boundary.h"
#include "core/plugin/internal.h"

#include <tenon/tenon.h>

END
    $text .= table_struct($_) . "\n" for @interfaces;
    for my $interface (@interfaces) {
        $text .= "/* ---- $interface->{id} ---- */\n\n";
        for my $f (in_table($interface)) {
            my @checks = checks_of($f);
            next unless @checks;
            $f->{checked} = 1;
            my $nothing = nothing_of($f->{result});
            $text .= 'static ' . spaced($f->{result}) . "checked_$f->{name}(" . list_of($f) . ")\n{\n";
            for (@checks) {
                my ($wrong, $call) = @$_;
                my $return = 'return' . (defined $nothing ? " $nothing" : '') . ';';
                if ($wrong eq '') { $text .= "    if (!$call)\n        $return\n" }
                elsif ($f->{result} eq 'tn_status') { $text .= "    if ($wrong)\n        return $call;\n" }
                else { $text .= "    if ($wrong) {\n        $call;\n        $return\n    }\n" }
            }
            $text .= '    ' . (defined $nothing ? 'return ' : '') . "$f->{name}(" . names_of($f) . ");\n}\n";
        }
        for my $checked (0, 1) {
            $text .= "\nstatic const struct tn_$interface->{short}_table $interface->{short}_" . ($checked ? 'checked' : 'plain') . " = {\n";
            for my $f (in_table($interface)) {
                $text .= "    .$f->{name} = " . ($checked && $f->{checked} ? 'checked_' : '') . "$f->{name},\n";
            }
            $text .= "};\n";
        }
        $text .= "\n";
    }
    $text .= "static const struct interface {\n    const char *id;\n    uint32_t revision;\n    uint32_t size;\n";
    $text .= "    const void *plain;\n    const void *checked;\n} interfaces[] = {\n";
    $text .= "    { \"$_->{id}\", $_->{revision}, (uint32_t)sizeof $_->{short}_plain, &$_->{short}_plain, &$_->{short}_checked },\n" for @interfaces;
    $text .= <<'END';
};

const void *tn__host_interface(const char *id, uint32_t min, uint32_t max, uint32_t *revision, uint32_t *size)
{
    for (int64_t i = 0; id && i < tn__countof(interfaces); i++) {
        const struct interface *found = &interfaces[i];
        if (strcmp(found->id, id) || found->revision < min || found->revision > max)
            continue;
        if (revision)
            *revision = found->revision;
        if (size)
            *size = found->size;
        return tn__boundary_on() ? found->checked : found->plain;
    }
    return NULL;
}
END
    return $text;
}

# The kinds of contributions are the numbers TN_KIND_tn_NAME_def; a folder has the row tn__kind_NAME.
sub kinds_c {
    my $path = "$srcdir/sdk/include/tenon/abi.h";
    open my $in, '<', $path or die "$path: $!\n";
    my @kinds = map { /^\s+TN_KIND_tn_(\w+)_def = \d+/ ? $1 : () } <$in>;
    my $text = <<'END';
/* SPDX-License-Identifier: MIT
 *
 * Generated from <tenon/abi.h> by sdk/api/generate.pl; do not edit. All kinds of contributions. */
#include "core/plugin/kind.h"

END
    $text .= "extern TN_HIDDEN const tn__kind tn__kind_$_;\n" for @kinds;
    $text .= "\nconst tn__kind *const tn__kinds[] = {\n";
    $text .= "    &tn__kind_$_,\n" for @kinds;
    return $text . "    NULL,\n};\n";
}

# ---- for readers ---------------------------------------------------------------------------------

sub shown {
    my ($f) = @_;
    return spaced($f->{result}) . "$f->{name}(" . list_of($f) . ($f->{variadic} ? ', ...' : '') . ')';
}

sub tags_of {
    my ($f) = @_;
    my @tags;
    push @tags, "[$f->{tags}{thread}]" if $f->{tags}{thread} ne 'any-thread';
    push @tags, "[$f->{tags}{ownership}]" if $f->{tags}{ownership};
    for my $tag (qw(null-ok inout taken)) {
        my @known = grep { $f->{known}{$_} } @{ $f->{tags}{ $tag =~ tr/-/_/r } };
        push @tags, "[$tag: " . join(', ', @known) . ']' if @known;
    }
    my @arrays = grep { $f->{known}{$_} } sort keys %{ $f->{tags}{array} };
    push @tags, '[array: ' . join(', ', map { "$_ $f->{tags}{array}{$_}" } @arrays) . ']' if @arrays;
    push @tags, '[null-through]' if $f->{tags}{null_through};
    push @tags, "[since: $f->{tags}{since}]" if $f->{tags}{since};
    push @tags, '[program]' if $f->{program};
    return join ' ', @tags;
}

sub api_md {
    my $text = "# Functions\n\nGenerated from the public headers. The tags after a function say which threads may call it, who owns the result "
        . "and which arguments may be NULL; `<tenon/base.h>` explains them. Functions with `[program]` are not available to plugins.\n";
    for my $interface (@interfaces) {
        $text .= "\n## $interface->{id}, revision $interface->{revision}\n\nHeader `<" . ($interface->{header} =~ s{sdk/include/}{}r) . ">`\n";
        my ($heading, $words, $open) = ('', undef, 0);
        for my $f (@{ $interface->{functions} }) {
            my $new = defined $f->{heading} && $f->{heading} ne $heading;
            my $key = "$f->{words}|" . tags_of($f);
            if ($new || !defined $words || $words ne $key) {
                $text .= close_group($open) if $open;
                $text .= "\n### $f->{heading}\n" if $new;
                $heading = $f->{heading} if $new;
                $text .= "\n```c\n";
                $open = $f;
                $words = $key;
            }
            $text .= shown($f) . ";\n";
        }
        $text .= close_group($open) if $open;
    }
    return $text;
}

sub close_group {
    my ($f) = @_;
    my $tags = tags_of($f);
    return "```\n\n" . join(' ', grep { $_ ne '' } $f->{words}, $tags ne '' ? "`$tags`" : '') . "\n";
}

# Enums, structs, types, callbacks and constants of all headers.
sub declarations {
    my @headers;
    for my $path (sort glob "$srcdir/sdk/include/tenon/*.h") {
        (my $shown = $path) =~ s{.*/(sdk/include/)}{$1};
        push @headers, Declarations::header($path, $shown) unless $path =~ m{/(?:host|ops)\.h$};
    }
    Declarations::finish(@headers);
    return \@headers;
}

# NULL makes the call fail without a new error.
sub through {
    my ($f, $p) = @_;
    return $f->{tags}{null_through} && $p->{type} =~ $through && !grep { $_ eq $p->{name} } @{ $f->{tags}{null_ok} };
}

sub nullable {
    my ($f, $p) = @_;
    return 0 unless $p->{pointer};
    return 1 if grep { $_ eq $p->{name} } @{ $f->{tags}{null_ok} };
    return $f->{tags}{null_through} && $p->{type} =~ $through;
}

write_file('sdk/include/tenon/host.h', host_h());
write_file('lib/library/host_tables.c', host_tables_c());
write_file('lib/libtenon.sym', join '', map { "$_\n" } sort map { $_->{name} } map { @{ $_->{functions} } } @interfaces);
write_file('lib/library/kind_list.c', kinds_c());
write_file('docs/reference/api.md', api_md());
write_file('sdk/api.json', Json::text(\@interfaces, declarations(),
                                      { since => \&since, nullable => \&nullable, through => \&through }));
