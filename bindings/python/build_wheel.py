# SPDX-License-Identifier: MIT
"""What pip calls to build this package: a wheel with the sources of tenon/ and the generated
tenon/_api.py. Needs no other package, so `pip install ./bindings/python` works without a network.

api.json and operators.json come from $TENON_SDK, a build folder of the tree, the tarball, or an
installed Tenon (pkg-config); or the generators of the tree write them."""

import base64
import hashlib
import os
import re
import subprocess
import sys
import tempfile
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import generate  # noqa: E402

TREE = os.path.dirname(os.path.dirname(HERE))
TAG = "py3-none-any"


def _has(folder):
    return all(os.path.exists(os.path.join(folder, name))
               for name in ("api.json", "operators.json"))


def _installed():
    try:
        found = subprocess.run(["pkg-config", "--variable=pkgdatadir", "tenon"],
                               capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return found.stdout.strip()


def api_text():
    """The text of tenon/_api.py."""
    named = os.environ.get("TENON_SDK")
    places = [named] if named else [os.path.join(TREE, "build", "sdk"), os.path.join(TREE, "sdk")]
    for place in places:
        if _has(place):
            return generate.generate(place)
    if named:
        raise FileNotFoundError(f"TENON_SDK={named} has no api.json and operators.json")
    script = os.path.join(TREE, "sdk", "api", "generate.pl")
    if os.path.exists(script):
        with tempfile.TemporaryDirectory() as out:
            for name in ("operators", "api"):
                subprocess.run(["perl", os.path.join(TREE, "sdk", name, "generate.pl"),
                                "--srcdir", TREE, "--outdir", out], check=True)
            return generate.generate(os.path.join(out, "sdk"))
    place = _installed()
    if place and _has(place):
        return generate.generate(place)
    raise FileNotFoundError("no api.json: set TENON_SDK to the folder share/tenon-0 of an "
                            "installed Tenon")


def _project():
    with open(os.path.join(HERE, "pyproject.toml"), encoding="utf-8") as file:
        rows = dict(re.findall(r'^([\w-]+) = "(.*)"$', file.read(), re.M))
    return rows


def _metadata():
    rows = _project()
    return (f"Metadata-Version: 2.1\nName: {rows['name']}\nVersion: {rows['version']}\n"
            f"Summary: {rows['description']}\nRequires-Python: {rows['requires-python']}\n"
            "License: MIT\n")


def files():
    package = os.path.join(HERE, "tenon")
    for folder, folders, names in os.walk(package):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        inside = os.path.relpath(folder, package).replace(os.sep, "/")
        for name in sorted(names):
            if name.endswith((".py", ".pyi", "py.typed")) and name != "_api.py":
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    yield os.path.normpath(f"tenon/{inside}/{name}"), file.read()
    yield "tenon/_api.py", api_text()


def write(folder, tag, binaries):
    """Writes a wheel, with further files as pairs of a name and bytes; returns its name."""
    rows = _project()
    info = f"{rows['name']}-{rows['version']}.dist-info"
    pure = "false" if binaries else "true"
    members = [(name, text.encode()) for name, text in files()] + binaries
    members.append((f"{info}/METADATA", _metadata().encode()))
    members.append((f"{info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: tenon\n"
                                   f"Root-Is-Purelib: {pure}\nTag: {tag}\n".encode()))
    record = []
    for name, content in members:
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=")
        record.append(f"{name},sha256={digest.decode()},{len(content)}\n")
    record.append(f"{info}/RECORD,,\n")
    members.append((f"{info}/RECORD", "".join(record).encode()))
    wheel = f"{rows['name']}-{rows['version']}-{tag}.whl"
    with zipfile.ZipFile(os.path.join(folder, wheel), "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members:
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o100644 << 16
            archive.writestr(entry, content)
    return wheel


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    return write(wheel_directory, TAG, [])


def build_sdist(sdist_directory, config_settings=None):
    raise NotImplementedError("install from the folder: pip install ./bindings/python")
