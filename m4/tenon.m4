# SPDX-License-Identifier: MIT
#
# TN_ARG_WITH(NAME, VARIABLE, HELP): --with-NAME=auto|yes|no into with_VARIABLE. Anything else is an error.
AC_DEFUN([TN_ARG_WITH],
[AC_ARG_WITH([$1], [AS_HELP_STRING([--with-$1=auto|yes|no], [$3])], [with_$2=$withval], [with_$2=auto])
AS_CASE([$with_$2], [auto|yes|no], [],
  [AC_MSG_ERROR([--with-$1=$with_$2: what is accepted is auto, yes and no])])])

# TN_WITH_RESULT(NAME, VARIABLE, FOUND, WHAT-IS-MISSING): sets have_VARIABLE to yes or no; --with-NAME=yes and absent is an error.
AC_DEFUN([TN_WITH_RESULT],
[AS_IF([test "$with_$2" = no], [have_$2=no],
       [test "$3" = yes], [have_$2=yes],
       [test "$with_$2" = yes], [AC_MSG_ERROR([--with-$1=yes, but $4])],
       [have_$2=no])])

# TN_CFLAG(FLAG, VARIABLE): appends FLAG to VARIABLE if the compiler takes it.
AC_DEFUN([TN_CFLAG],
[AS_VAR_PUSHDEF([tn_var], [tn_cv_cflag_$1])dnl
AC_CACHE_CHECK([whether $CC takes $1], [tn_var],
  [tn_save_CFLAGS=$CFLAGS
   CFLAGS="$CFLAGS -Werror $1"
   AC_COMPILE_IFELSE([AC_LANG_PROGRAM([], [])], [AS_VAR_SET([tn_var], [yes])], [AS_VAR_SET([tn_var], [no])])
   CFLAGS=$tn_save_CFLAGS])
AS_VAR_IF([tn_var], [yes], [$2="$$2 $1"])
AS_VAR_POPDEF([tn_var])])

# TN_LDFLAG(FLAG, VARIABLE): appends FLAG to VARIABLE if a shared object can be linked with it.
AC_DEFUN([TN_LDFLAG],
[AS_VAR_PUSHDEF([tn_var], [tn_cv_ldflag_$1])dnl
AC_CACHE_CHECK([whether $CC links shared objects with $1], [tn_var],
  [tn_save_CFLAGS=$CFLAGS
   CFLAGS="$CFLAGS -fPIC -shared $1"
   AC_LINK_IFELSE([AC_LANG_SOURCE([int tn_answer(void); int tn_answer(void) { return 42; }])],
     [AS_VAR_SET([tn_var], [yes])], [AS_VAR_SET([tn_var], [no])])
   CFLAGS=$tn_save_CFLAGS])
AS_VAR_IF([tn_var], [yes], [$2="$$2 $1"])
AS_VAR_POPDEF([tn_var])])

# TN_PLAIN_PATHS: an error in one line where the source or the build folder has a blank, a colon or a semicolon in its path: make splits paths at blanks,
# and a colon ends a path in TENON_PLUGIN_PATH. Automake refuses quotes and the like itself.
AC_DEFUN([TN_PLAIN_PATHS],
[for tn_folder in "`pwd`" "`cd "$srcdir" && pwd`"; do
  AS_CASE(["$tn_folder"],
    [*[[[:space:]:\;]]*], [AC_MSG_ERROR([the path "$tn_folder" has a blank, a colon or a semicolon, which make cannot take; move it to a path without them])])
done])
