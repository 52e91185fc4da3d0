#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Law 1: the core (core/ and lib/) names no device, layer, operator or optimizer of a plugin, but
# for core/op/needed.c. Law 2: a plugin, a tool, an example sees the public headers only; plugins
# include <tenon/plugin.h>, <tenon/native.h> where they publish or use native handles, and the
# headers of TN_PUBLIC_INTERFACES (Makefile.am), where they provide what these call.
# Law 4: core and plugins neither end the process nor print.
cd "$abs_srcdir" || exit 1
status=0
complain() {
    echo "$1"
    printf '%s\n' "$2" | sed 's/^/    /'
    status=1
}

# Code without comments, as FILE:LINE:TEXT.
code() {
    find "$@" \( -name '*.c' -o -name '*.h' -o -name '*.cu' -o -name '*.cl' \) ! \
        -name 'host_tables.c' ! -name 'schema.[ch]' | sort |
        xargs "${PERL:-perl}" -e '
            for my $file (@ARGV) {
                open my $in, "<", $file or next;
                local $/;
                my $text = <$in>;
                $text =~ s{("(?:\\.|[^"\\\n])*"|\x27(?:\\.|[^\x27\\\n])+\x27)|/\*(.*?)\*/|//[^\n]*}
                    { defined $1 ? $1 : defined $2 ? ($2 =~ tr/\n//cdr) : "" }gse;
                my $line = 0;
                print "$file:", ++$line, ":$_\n" for split /\n/, $text, -1;
            }'
}

# ---- law 1 ----
# The names are read from the plugins: device types are the folders backend-TYPE, the others are
# descriptors or lines of the schema. (Libraries that two plugins may bring at once are
# distinguished by name in core/plugin/file_check.c: rule 13.)
devices=$(ls -d plugins/backend-* | sed 's,.*/backend-,,')
other_devices=$(printf '%s\n' "$devices" | grep -vxE 'cpu|meta' | paste -sd'|')
devices=$(printf '%s\n' "$devices" | paste -sd'|')
provided=$({ sed -n 's/^ *\.name = "\([A-Za-z0-9_-]*\)".*/\1/p' plugins/*/*.c
    sed -n 's/^[A-Z_]*LAYER[A-Z_]*([a-z0-9_]*, *"\([A-Za-z0-9]*\)".*/\1/p' plugins/layers/*.c
    sed -n 's/^ *layer \([A-Za-z0-9]*\).*/\1/p' sdk/operators/*.ops
    sed -n 's/.*[^A-Z_]INIT("\([a-z_]*\)".*/\1/p' plugins/layers/*.c; } | sort -u)
classes=$(printf '%s\n' "$provided" | grep '[A-Z]' | paste -sd'|')
provided=$(printf '%s\n' "$provided" | paste -sd'|')
extensions=$(sed -n 's/^ *\.extensions = "\([^"]*\)".*/\1/p' plugins/formats/*.c | tr ' ' '\n' |
    sed 's/\./\\./g' | paste -sd'|')
for names in "$devices" "$classes" "$extensions"; do
    test -n "$names" || complain "law 1: no names found in the plugins" ""
done
found=$(code core lib | grep -wiE "cudnn|cublas|pocl|nvidia|jansson|$other_devices" |
    grep -vE ':[0-9]+: *#include <')
test -z "$found" || complain "law 1: the core names a library or a device of a plugin:" "$found"
# One exception: the child `parametrizations` of a module prints the type ModuleDict, as in PyTorch.
found=$(code core lib | grep -E "\\b($classes)\\b|\"($provided)\"|\"[^\"]*($extensions)\\b" |
    grep -vE '^lib/parametrize/list\.c:[0-9]+:.*\.name = "ModuleDict" \};$')
test -z "$found" || complain "law 1: the core names what a plugin provides:" "$found"
found=$(code core lib | grep -wE "\"($devices)(:[0-9]+)?\"")
# Two exceptions: the type of the device whose memory is the process's own (DLPack's kDLCPU), and
# the default of TENON_DEVICE.
found=$(printf '%s\n' "$found" | grep -vE '#define TN__HOST_DEVICE_TYPE|"TENON_DEVICE", "cpu"')
test -z "$found" || complain "law 1: the core names a device:" "$found"
needed=$(sed -n 's/^ *\[TN__NEED_[a-z_]*\] = { { "\([a-z_]*\)".*/\1/p' core/op/needed.c |
    paste -sd'|')
ops=$(sed -n 's/^op //; t names; d; : names; s/ rev .*//; s/ /\n/g; p' sdk/operators/*.ops |
    grep -vxE "$needed" | paste -sd'|')
found=$(code core lib |
    grep -E "\"($ops)\"|\\btn_($ops)_?\\(|tn_op_(find|lookup|call)[a-z0-9_]*\\(\"" |
    grep -vE '\btn_(log|view|item)\(|"view"|core/op/needed\.c')
test -z "$found" || complain "law 1: the core calls an operator that is not in core/op/needed.c:" \
    "$found"

# ---- law 2 ----
interfaces='average|checkpoint|foreign|gradcheck|parallel|print|profile|quantize'
found=$(code plugins | grep -E '#[ ]*include *[<"]tenon/' |
    grep -vE "<tenon/(plugin|native|$interfaces)\.h>")
test -z "$found" || complain \
    "law 2: a plugin includes more than plugin.h, native.h and $interfaces:" "$found"
found=$(code plugins sdk tools examples bench | grep -E '#[ ]*include *[<"]([^">]*/)?(core|lib)/')
test -z "$found" || complain "law 2: a part looks into the core:" "$found"

# ---- law 4 ----
calls='abort|exit|_exit|_Exit|quick_exit|printf|vprintf|puts|putchar|perror'
calls="$calls|signal|sigaction|longjmp|setlocale|system"
# longjmp is allowed in image_jpeg.c: libjpeg reports errors to a function that must not return.
# probe.c ends and prepares its child process, in which drivers may do what they like.
found=$(code core lib plugins | grep -E "(^|[^a-zA-Z0-9_>.\"])($calls) *\\(" |
    grep -vE '\.(cl|cu):|^plugins/data/image_jpeg\.c:[0-9]+: *longjmp\(' |
    grep -vE '^plugins/backend-opencl/probe\.c:[0-9]+: *(_exit\([0-2]\)|signal\(s, SIG_DFL\));')
test -z "$found" || complain \
    "law 4: the core or a plugin ends the process, prints or changes its settings:" "$found"
found=$(code core lib plugins | grep -wE 'stdout|stderr|RTLD_GLOBAL' |
    grep -vE '^core/base/log\.c:')
test -z "$found" || complain \
    "law 4: the core or a plugin writes to the program's streams or loads globally:" "$found"
exit $status
