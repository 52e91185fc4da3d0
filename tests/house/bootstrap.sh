#!/bin/sh
# SPDX-License-Identifier: MIT
#
# What bootstrap asks of dpkg: a package that dpkg knows by name only ("not-installed", because
# another suggests it) has to be installed, and configure runs again after packages were installed.
# A long path works. For a path that make cannot use, bootstrap, configure and .ci/run print one
# line.
set -u
top=$(cd "${srcdir:-.}" && pwd)
place=$(mktemp -d) || exit 99
trap 'rm -rf "$place"' EXIT
failed=0
fail() { echo "FAIL: $*"; failed=1; }

mkdir -p "$place/bin" "$place/tree" || exit 99
cp "$top/bootstrap" "$place/tree/" || exit 99
: >"$place/tree/configure.ac"
mkdir "$place/tree/m4" && : >"$place/tree/m4/core-folder.m4" && : >"$place/tree/m4/tenon.m4"

# The fake commands append their arguments to $place/calls.
fake() { { echo '#!/bin/sh'; cat; } >"$place/bin/$1"; chmod +x "$place/bin/$1"; }
fake dpkg-query <<END
for last; do :; done
if grep -qx "\$last" "$place/installed"; then printf 'installed '
elif test "\$last" = make; then printf 'not-installed '
else exit 1
fi
END
fake apt-get <<END
echo "apt-get \$*" >>"$place/calls"
for package; do
    case \$package in -* | install | update) ;; *) echo "\$package" >>"$place/installed" ;; esac
done
END
fake sudo <<'END'
test "$1" = -n && shift
exec "$@"
END
fake autoreconf <<'END'
printf '#!/bin/sh\n: >config.status\necho configured >>"$CALLS"\n' >configure
chmod +x configure
END
fake make <<'END'
exit 0
END
CALLS=$place/calls PATH=$place/bin:$PATH
export CALLS PATH
unset BUILD_DIR CONFIGURE_ARGS JOBS
: >"$place/installed"

run() { (cd "$place/tree" && ./bootstrap "$@") >"$place/out" 2>&1 ||
    fail "bootstrap $*: status $?: $(cat "$place/out")"; }

run build
grep -q 'apt-get install.* make' "$place/calls" ||
    fail "make, which dpkg calls not-installed, was not asked for: $(cat "$place/calls")"
grep -q 'apt-get install.* check' "$place/calls" &&
    fail "the library check was installed for a build"
test "$(grep -c configured "$place/calls")" = 1 || fail "configure did not run once"

run build
test "$(grep -c apt-get "$place/calls")" = 1 ||
    fail "packages that are installed were asked for again"
test "$(grep -c configured "$place/calls")" = 1 ||
    fail "configure ran again though nothing had changed"

echo check >>"$place/installed"
run build
test "$(grep -c configured "$place/calls")" = 2 ||
    fail "configure did not run again after a package had come"

# ---- paths ----
long=$place/$(printf '%0200d' 0)
mkdir "$long" && cp "$top/bootstrap" "$place/tree/configure.ac" "$long/" &&
    cp -R "$place/tree/m4" "$long/" || exit 99
(cd "$long" && ./bootstrap build) >"$place/out" 2>&1 ||
    fail "a path of 200 characters: $(cat "$place/out")"

refuses() { # FOLDER COMMAND...
    (cd "$1" && shift && "$@") >"$place/out" 2>&1 && fail "$* in that folder: status 0"
    test "$(wc -l <"$place/out")" -eq 1 && grep -qF "$1" "$place/out" &&
        grep -q 'which .*make cannot take.*; move it' "$place/out" ||
        fail "$* : not one clear line: $(cat "$place/out")"
    test -z "$(ls -A "$1" | grep -vxE 'bootstrap|\.ci|config\.log')" ||
        fail "$*: something is left: $(ls -A "$1")"
}
: >"$place/calls"
for name in 'a b' 'a:b' "a'b" 'a$b'; do
    odd=$place/$name
    mkdir -p "$odd" && cp "$top/bootstrap" "$odd/" || exit 99
    refuses "$odd" ./bootstrap
    refuses "$odd" ./bootstrap check
    if test -f "$top/.ci/run"; then # a distribution has none
        mkdir "$odd/.ci" && cp "$top/.ci/run" "$odd/.ci/" || exit 99
        refuses "$odd" .ci/run
    fi
    # For names with ' or $, Automake's part of configure prints a message of its own.
    case $name in *[\'\$]*) ;; *) refuses "$odd" sh "$top/configure" ;; esac
done
test ! -s "$place/calls" || fail "packages were asked for: $(cat "$place/calls")"

# ---- without libcheck ----
# The Makefile that configure writes without libcheck: no program in it may need check.h, and make
# check shows that libcheck is absent.
unset MAKEFLAGS MFLAGS MAKELEVEL
sed -e 's/\["HAVE_CHECK_TRUE"\]="[^"]*"/["HAVE_CHECK_TRUE"]="#"/' \
    -e 's/\["HAVE_CHECK_FALSE"\]="[^"]*"/["HAVE_CHECK_FALSE"]=""/' \
    "$abs_builddir/config.status" >"$place/config.status" || exit 99
mkdir "$place/plain" && cd "$abs_builddir" &&
    sh "$place/config.status" -q --file="$place/plain/Makefile:$top/Makefile.in" ||
    fail "config.status"
printf 'show:\n\t@for %s\n\t@for %s\n' \
    'name in $(check_PROGRAMS) $(check_LTLIBRARIES); do echo "program $$name"; done' \
    'name in $(TESTS); do echo "test $$name"; done' >"$place/show"
PATH=${PATH#*:} make -s -C "$abs_builddir" -f "$place/plain/Makefile" -f "$place/show" show \
    >"$place/out" 2>&1 || fail "make: $(cat "$place/out")"
test "$(grep -c '^program ' "$place/out")" -gt 5 ||
    fail "without libcheck: no programs: $(cat "$place/out")"
for name in $(sed -n 's/^program //p' "$place/out"); do
    source=$top/$name.c
    test -f "$source" || continue
    # shellcheck disable=SC2086
    ${CC:-cc} -M -MG -I"$top" -I"$abs_builddir/sdk/include" -I"$top/sdk/include" "$source" |
        tr ' ' '\n' | grep -qE '(^|/)check\.h$' &&
        fail "without libcheck: $name is built, and needs check.h"
done
for name in $(sed -n 's/^test //p' "$place/out"); do
    case $name in *.sh) ;; *) fail "without libcheck: $name runs" ;; esac
done
grep -qx 'test tests/house/without_check.sh' "$place/out" ||
    fail "without libcheck: nothing says so"
sh "$top/tests/house/without_check.sh" >"$place/out" && fail "without_check.sh: status 0"
grep -q '^SKIP: .*libcheck' "$place/out" || fail "without_check.sh: $(cat "$place/out")"

exit $failed
