#!/bin/sh
# SPDX-License-Identifier: MIT
#
# What bootstrap asks of dpkg: a package that dpkg knows by name only ("not-installed", because another suggests it) has
# to be installed, and configure runs again once packages have come.
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

# The stand-ins keep what was asked of them in $place/calls.
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
for package; do case \$package in -* | install | update) ;; *) echo "\$package" >>"$place/installed" ;; esac; done
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

run() { (cd "$place/tree" && ./bootstrap "$@") >"$place/out" 2>&1 || fail "bootstrap $*: status $?: $(cat "$place/out")"; }

run build
grep -q 'apt-get install.* make' "$place/calls" || fail "make, which dpkg calls not-installed, was not asked for: $(cat "$place/calls")"
grep -q 'apt-get install.* check' "$place/calls" && fail "the library check was installed for a build"
test "$(grep -c configured "$place/calls")" = 1 || fail "configure did not run once"

run build
test "$(grep -c apt-get "$place/calls")" = 1 || fail "packages that are installed were asked for again"
test "$(grep -c configured "$place/calls")" = 1 || fail "configure ran again though nothing had changed"

echo check >>"$place/installed"
run build
test "$(grep -c configured "$place/calls")" = 2 || fail "configure did not run again after a package had come"

exit $failed
