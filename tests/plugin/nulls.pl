#!/usr/bin/perl
# SPDX-License-Identifier: MIT
#
# Writes a C function for every function of sdk/api.json that takes a pointer: it calls it with all
# of them NULL, or with one of them NULL and samples for the others (tests/plugin/test_nulls.c).
#
#   perl nulls.pl API.JSON OUT.H

use strict;
use warnings;
use JSON::PP ();

my ($from, $to) = @ARGV;
die "usage: perl nulls.pl API.JSON OUT.H\n" unless defined $to;
open my $in, '<', $from or die "$from: $!\n";
my $api = JSON::PP::decode_json(do { local $/; <$in> });
close $in;

# A sample of a type, or of one parameter (FUNCTION.NAME, then NAME, then the type).
my %sample = (
    'const char *'             => '"x"',
    'const void *'             => 'given_bytes',
    'void *'                   => 'given_bytes',
    'char *'                   => '(char *)given_bytes',
    'size_t *'                 => '(size_t *)given_bytes',
    'int64_t *'                => '(int64_t *)given_bytes',
    'const int64_t *'          => '(const int64_t *)given_bytes',
    'uint64_t *'               => '(uint64_t *)given_bytes',
    'tn_scalar *'              => '(tn_scalar *)given_bytes',
    'double *'                 => '(double *)given_bytes',
    'uint64_t[3]'              => '(uint64_t *)given_bytes',
    'const uint64_t[3]'        => '(const uint64_t *)given_bytes',
    'tn_dtype *'               => '(tn_dtype *)given_bytes',
    'tn_error *'               => '(tn_error *)given_bytes',
    'tn_memory_stats *'        => '(tn_memory_stats *)given_bytes',
    'tn_plan_stats *'          => '(tn_plan_stats *)given_bytes',
    'tn_plan_value *'          => '(tn_plan_value *)(void *)given_bytes',
    'const tn_stream_args *'   => '(const tn_stream_args *)given_bytes',
    'const tn_event_args *'    => '(const tn_event_args *)given_bytes',
    'tn_shared *'              => '(tn_shared *)given_bytes',
    'const tn_shared *'        => '(const tn_shared *)given_bytes',
    'tn_device_info *'         => '(tn_device_info *)given_bytes',
    'tn_fallback_count *'      => '(tn_fallback_count *)given_bytes',
    'tn_plugin_report *'       => '(tn_plugin_report *)given_bytes',
    'tn_env_row *'             => '(tn_env_row *)given_bytes',
    'tn_tensor *'              => 'given_tensor()',
    'const tn_tensor *'        => 'given_tensor()',
    'tn_tensor *const *'       => 'given_tensors()',
    'tn_tensor **'             => '(tn_tensor **)given_bytes',
    'tn_module *'              => 'given_module("Linear(2, 2)")',
    'const tn_module *'        => 'given_module("Linear(2, 2)")',
    'list'                     => 'given_module("ModuleList(Linear(2, 2))")',
    'dict'                     => 'given_module("ModuleDict(a=Linear(2, 2))")',
    'tn_list_extend.other'     => 'given_module("ModuleList(Linear(2, 2))")',
    'tn_dict_update.other'     => 'given_module("ModuleDict(b=Linear(2, 2))")',
    'const char *const *'      => 'given_names',
    'const tn_value *'         => 'given_values',
    'tn_value_get.dict'        => '&given_dict',
    'const tn_device *'        => 'tn_device_find("cpu")',
    'tn_stream *'              => 'tn_stream_new(tn_device_find("cpu"), NULL)',
    'tn_event *'               => 'tn_event_record(tn_device_find("cpu"), NULL, 0)',
    'const tn_op *'            => 'tn_op_find("relu", 0)',
    'tn_op_ref *'              => '&given_ref',
    'tn_prepared *'            => 'tn_op_prepare(tn_op_find("relu", 0), given_tensors(), 1, NULL, 0)',
    'const tn_prepared *'      => 'tn_op_prepare(tn_op_find("relu", 0), given_tensors(), 1, NULL, 0)',
    'const tn_backward_options *' => '&given_backward',
    'const tn_function *'      => '&given_custom',
    'tn_pack *'                => 'given_pack()',
    'const tn_pack *'          => 'given_pack()',
    'const tn_walk_options *'  => '&given_walk',
    'const tn_tracing_options *' => '&given_trace',
    'const tn_plan_options *'  => '&given_plan',
    'const tn_step_options *'  => '&given_step',
    'tn_step *'                => 'tn_step_new(given_module("Linear(2, 2)"), NULL, given_optimizer(), NULL)',
    'const tn_computed *'      => '&given_computed',
    'tn_memo *'                => 'tn_memo_new()',
    'const tn_memo *'          => 'tn_memo_new()',
    'tn_walk *'                => 'tn_walk_begin(given_module("Linear(2, 2)"), TN_SLOT_CHILD, NULL)',
    'tn_state *'               => 'given_state()',
    'const tn_state *'         => 'given_state()',
    'tn_load_report *'         => 'tn_load_report_new()',
    'const tn_load_report *'   => 'tn_load_report_new()',
    'tn_names *'               => 'given_list()',
    'const tn_names *'         => 'given_list()',
    'const struct tn_source *' => '&given_source',
    'const struct tn_sink *'   => '&given_sink',
    'const struct tn_plugin *' => '&given_plugin',
    'const struct tn_interface_need *' => '&given_need',
    'uint32_t *'               => '(uint32_t *)given_bytes',
    'tn_optimizer *'           => 'given_optimizer()',
    'const tn_optimizer *'     => 'given_optimizer()',
    'tn_scheduler *'           => 'tn_scheduler_new(given_optimizer(), "StepLR(step_size=1)")',
    'const tn_scheduler *'     => 'tn_scheduler_new(given_optimizer(), "StepLR(step_size=1)")',
    'tn_graph *'               => 'given_graph()',
    'const tn_graph *'         => 'given_graph()',
    'tn_graph *const *'        => 'given_graphs()',
    'tn_plan *'                => 'tn_plan_new(given_graph(), NULL)',
    'tn_node *'                => 'given_node()',
    'const tn_node *'          => 'given_node()',
    'tn_node *const *'         => 'given_nodes()',
    'struct tn_meta *'         => '(struct tn_meta *)given_bytes',
    'tn_comm *'                => 'given_comm()',
    'const tn_comm *'          => 'given_comm()',
    'const tn_comm_args *'     => '&given_group',
    'tn_work *'                => 'given_work()',
    'bool *'                   => '(bool *)given_bytes',
    'tn_comm_stats *'          => '(tn_comm_stats *)(void *)given_bytes',
    'const tn_prune_target *'  => '(const tn_prune_target *)(const void *)given_bytes',
    'tn_prune_report *'        => '(tn_prune_report *)(void *)given_bytes',
    'tn_channels *'            => '(tn_channels *)(void *)given_bytes',
    'tn_dataset *'             => 'given_dataset()',
    'const tn_dataset *'       => 'given_dataset()',
    'const double *'           => '(const double *)(const void *)given_bytes',
    'tn_loader *'              => 'tn_loader_parse(given_dataset(), "batch_size=2")',
    'const tn_loader *'        => 'tn_loader_parse(given_dataset(), "batch_size=2")',
    'tn_dlpack *'              => 'tn_tensor_to_dlpack(given_tensor(), NULL)',
    'tn_dlpack_versioned *'    => 'tn_tensor_to_dlpack_versioned(given_tensor(), NULL)',
    'const tn_allocator *'     => '(const tn_allocator *)given_bytes',
    'tn_register_contribution.contribution' => '&given_layer',
    'const tn_head *'          => '&given_layer.head',
    'path'                     => '"/nowhere/x.safetensors"',
);
# The others by value.
my %plain = (
    'int64_t' => '1', 'int32_t' => '1', 'uint32_t' => '1', 'uint64_t' => '0', 'size_t' => '8', 'int' => '0',
    'bool' => 'true', 'double' => '1.0', 'tn_scalar' => 'tn_scalar_int(1)',
    'tn_dtype' => 'TN_F32', 'tn_status' => 'TN_ERR_VALUE',
    'tn_value' => 'tn_value_int(1)', 'tn_memory_format' => '0',
    'tn_memory_kind' => '0', 'tn_hook_handle' => '1',
    'tn_module_slot_kind.kind' => '1', 'tn_reduction' => '0', 'tn_exchange' => '6',
);
# Only from inside a callback, or from a device that records, can these be had: such functions are
# called with all NULL only.
my %never = map { $_ => 1 }
    ('tn_function_ctx *', 'tn_loading *', 'const tn_loading *', 'tn_device_graph *');

my (@rows, $text);
$text = "/* SPDX-License-Identifier: MIT\n *\n * Generated from sdk/api.json by tests/plugin/nulls.pl; do not edit. */\n\n";
for my $f (map { @{ $_->{functions} } } @{ $api->{interfaces} }) {
    my @parameters = @{ $f->{parameters} };
    next if grep { $_->{type} eq 'va_list' } @parameters; # its sibling with `...` calls it
    my (@names, @may, @arguments, $alone);
    for my $p (@parameters) {
        my $type = $p->{type};
        if ($type eq 'tn_ints') {
            push @arguments, 'null == ' . @names . ' || null == ALL ? (tn_ints){ NULL, 2 } : given_shape';
            push @names, $p->{name};
            push @may, 0;
            next;
        }
        unless ($p->{pointer}) {
            my $given = $plain{"$f->{name}.$p->{name}"} // $plain{$type} // die "$f->{name}: no sample of $type\n";
            push @arguments, $given;
            next;
        }
        my $given = $sample{"$f->{name}.$p->{name}"} // $sample{ $p->{name} } // $sample{$type};
        if ($p->{declaration} =~ /\(\*/ || (!defined $given && $type !~ /\*|\[/)) {
            (my $cast = $type) =~ s/\(\*\s*\w+\)/(*)/;
            $given = "($cast)(void *)given_function";
        }
        $given = 'NULL', $alone = 1 if $never{$type};
        die "$f->{name}: no sample of $type for $p->{name}\n" unless defined $given;
        push @arguments, 'null == ' . @names . " || null == ALL ? NULL : $given";
        push @names, $p->{name};
        push @may, $p->{null} && !$p->{through} ? 1 : 0;
    }
    next unless @names;
    my $result = $f->{result};
    $text .= "static bool call_$f->{name}(int null)\n{\n";
    my @local;
    for my $i (0 .. $#parameters) {
        my $type = $parameters[$i]{type};
        my $declared = $parameters[$i]{declaration};
        my $name = $parameters[$i]{name};
        if ($declared =~ /\(\*/) { $declared =~ s/\(\*\s*\w+\)/(*a_$name)/ }
        elsif ($type =~ /^(.*?)\s*\[3\]$/) { $declared = "$1 *a_$name" }
        else { $declared =~ s/\b\Q$name\E((?:\[\w*\])*)$/a_$name$1/ }
        $text .= "    $declared = $arguments[$i];\n";
        push @local, "a_$name";
    }
    push @local, '7' if $f->{variadic};
    $text .= "    tn_error_clear();\n";
    my $call = "$f->{name}(" . join(', ', @local) . ')';
    my $nothing =
          $result eq 'void'      ? undef
        : $result eq 'tn_status' ? 'result != TN_OK'
        : $result eq 'const char *' ? 'result == NULL || !*result'
        : $result =~ /\*$/       ? 'result == NULL'
        : $result eq 'bool'      ? '!result'
        : $result eq 'double'    ? 'isnan(result)'
        : $result =~ /^(?:int|int32_t|int64_t)$/ ? 'result <= 0'
        : $result =~ /^(?:size_t|uint\d+_t|tn_hook_handle)$/ ? 'result == 0'
        :                          'true';
    if (defined $nothing) {
        $text .= '    ' . ($result =~ /\*$/ ? $result : "$result ") . "result = $call;\n";
        $text .= "    (void)result;\n" if $nothing eq 'true';
        $text .= "    return $nothing;\n}\n\n";
    } else {
        $text .= "    $call;\n    return true;\n}\n\n";
    }
    push @rows, sprintf "    { \"%s\", call_%s, %d, %s, { %s }, { %s } },\n", $f->{name}, $f->{name}, scalar @names,
        $alone ? 'true' : 'false', join(', ', map { "\"$_\"" } @names), join(', ', map { $_ ? 'true' : 'false' } @may);
}
$text .= "static const struct row rows[] = {\n" . join('', @rows) . "};\n";
open my $out, '>', "$to.tmp" or die "$to.tmp: $!\n";
print {$out} $text;
close $out or die "$to.tmp: $!\n";
rename "$to.tmp", $to or die "$to: $!\n";
