# SPDX-License-Identifier: MIT
#
# Autoconf's clean-up after each test removes a file named `core`. We have a folder of that name, on
# which `rm -f` fails; in the exit trap that leaves confdefs.h behind, which breaks `make distcheck`. Included
# before AC_INIT, this takes the operand out of every Autoconf and Automake macro that has it.
# tests/house/configure.sh looks whether any is left.
#
# TN_WITHOUT_CORE_FILE(MACRO)
m4_define([TN_WITHOUT_CORE_FILE],
[m4_ifdef([$1],
  [m4_define([$1],
    m4_bpatsubsts(m4_dquote(m4_defn([$1])),
      [rm -f core \*\.core core\.conftest\.\* &&], [rm -f *.core core.conftest.* &&],
      [rm -\(r?\)f core ], [rm -\1f ]))])])

TN_WITHOUT_CORE_FILE([_AC_INIT_PREPARE])
TN_WITHOUT_CORE_FILE([_AC_COMPILE_IFELSE])
TN_WITHOUT_CORE_FILE([_AC_LINK_IFELSE])
TN_WITHOUT_CORE_FILE([_AC_RUN_IFELSE])
TN_WITHOUT_CORE_FILE([AC_PROG_CC_C_O])
TN_WITHOUT_CORE_FILE([_AM_PROG_CC_C_O])
