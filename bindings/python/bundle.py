#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes a wheel that holds the library and its plugins, which pip installs without a compiler and
without other packages:

    python3 bundle.py PREFIX FOLDER

PREFIX is where Tenon was installed (make install). The wheel runs on systems whose C library is as
new as that of this one; its name says so. The libraries that Tenon links, but not those of the
system itself, are copied into it, with their licences where dpkg knows them. Those that Tenon opens
at run time (OpenBLAS, CUDA, libwebp, ...) are not."""

import glob
import os
import re
import subprocess
import sys
import tempfile

import build_wheel

# The parts of the C library and of the compiler that every system has.
SYSTEM = re.compile(r"(ld-linux.*|linux-vdso|lib(c|m|dl|rt|pthread|gcc_s|stdc\+\+|util))\.so.*")


def _read(path):
    with open(path, "rb") as file:
        return file.read()


def _linked(path):
    """The names and files of the libraries that a library links, also by others."""
    text = subprocess.run(["ldd", path], capture_output=True, text=True, check=True).stdout
    for line in text.splitlines():
        words = line.split()
        if "not found" in line:
            raise FileNotFoundError(f"{path}: {words[0]} is missing; expected its file")
        if "=>" in words and not SYSTEM.fullmatch(words[0]):
            yield words[0], os.path.realpath(words[2])


def _licence(path):
    """The file of Debian's package with the licence of a library; None: not known."""
    for name in (path, re.sub("^/usr/", "/", path)):
        try:
            found = subprocess.run(["dpkg-query", "-S", name], capture_output=True, text=True)
        except OSError:
            return None
        package = found.stdout.split(":")[0]
        text = f"/usr/share/doc/{package}/copyright"
        if found.returncode == 0 and os.path.exists(text):
            return text
    return None


def _folder_of(prefix):
    """The folder of the installed library."""
    places = ["lib", "lib64"] + sorted(glob.glob(os.path.join(prefix, "lib", "*-linux-gnu")))
    for place in places:
        folder = os.path.join(prefix, place)
        if glob.glob(os.path.join(folder, "libtenon.so.*")):
            return folder
    raise FileNotFoundError(f"{prefix}: no lib/libtenon.so.*; expected the prefix of an installed "
                            "Tenon")


def _stubs(library):
    """Type stubs of the module, which stubs.py writes with this library and its plugins."""
    with tempfile.TemporaryDirectory() as work:
        for name, text in build_wheel.files():
            path = os.path.join(work, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith("TENON_")}
        environment.update(TENON_LIBRARY=library, PYTHONPATH=work)
        script = os.path.join(build_wheel.HERE, "stubs.py")
        subprocess.run([sys.executable, script, os.path.join(work, "stubs")], check=True,
                       env=environment)
        for name in ("__init__.pyi", "optim.pyi", "nn/__init__.pyi", "py.typed"):
            yield f"tenon/{name}", _read(os.path.join(work, "stubs", name))


def files(prefix):
    """Pairs of a name in the wheel and its bytes."""
    folder = _folder_of(prefix)
    soname = os.path.basename(min(glob.glob(os.path.join(folder, "libtenon.so.*")), key=len))
    library = os.path.join(folder, soname)
    plugins = sorted(glob.glob(os.path.join(folder, "tenon", "*", "*.so")))
    if not plugins:
        raise FileNotFoundError(f"{folder}/tenon: no plugins; expected those of Tenon")
    yield f"tenon/lib/{soname}", _read(library)
    yield from _stubs(library)
    others = {}
    for path in [library] + plugins:
        others.update(_linked(path))
    for path in plugins:
        yield "tenon/lib/" + os.path.relpath(path, folder), _read(path)
    for name, path in sorted(others.items()):
        if name == soname:
            continue
        yield f"tenon/lib/linked/{name}", _read(path)
        text = _licence(path)
        if text:
            yield f"tenon/lib/linked/{name}.copyright", _read(text)


def tag():
    """The platform: its processor, and the oldest C library on which the wheel runs."""
    words = os.confstr("CS_GNU_LIBC_VERSION").split()[-1].split(".")
    return f"py3-none-manylinux_{words[0]}_{words[1]}_{os.uname().machine}"


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: bundle.py PREFIX FOLDER")
    prefix, folder = sys.argv[1:]
    sdk = sorted(glob.glob(os.path.join(prefix, "share", "tenon-[0-9]*")))
    if sdk:
        os.environ.setdefault("TENON_SDK", sdk[-1])
    print(os.path.join(folder, build_wheel.write(folder, tag(), list(files(prefix)))))


if __name__ == "__main__":
    main()
