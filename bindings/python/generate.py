# SPDX-License-Identifier: MIT
"""Writes tenon/_api.py from Tenon's descriptions of its own interface.

    python3 generate.py FOLDER OUT    FOLDER has api.json and operators.json

The result is a ctypes module: constants, structs, and the types of all functions and callbacks.
It needs no compiler, and neither does what imports it. docs/plugins/bindings.md describes the
files.
"""

import json
import keyword
import os
import re
import sys

NUMBERS = {
    "bool": "c.c_bool", "char": "c.c_char", "int": "c.c_int", "unsigned char": "c.c_ubyte",
    "int8_t": "c.c_int8", "uint8_t": "c.c_uint8", "int16_t": "c.c_int16", "uint16_t": "c.c_uint16",
    "int32_t": "c.c_int32", "uint32_t": "c.c_uint32", "int64_t": "c.c_int64",
    "uint64_t": "c.c_uint64", "size_t": "c.c_size_t", "float": "c.c_float", "double": "c.c_double",
}


class Generator:
    def __init__(self, api, operators):
        self.api = api
        self.operators = operators
        self.lines = []
        headers = api["headers"]
        self.structs = {s["name"]: s for h in headers for s in h["structs"]}
        self.callbacks = {f["name"]: f for h in headers for f in h["callbacks"]}
        self.numbers = dict(NUMBERS)
        for name, type_ in [(t["name"], t["type"]) for h in headers for t in h["types"]]:
            if type_ != "object":
                self.numbers[name] = NUMBERS[type_]

    def put(self, text=""):
        self.lines.append(text)

    # ---- types -------------------------------------------------------------------------------

    def type_of(self, text):
        """The ctypes type of a type in C: objects are addresses."""
        words = re.sub(r"\b(const|struct)\b", "", text)
        stars = words.count("*") + words.count("[")
        base = re.split(r"[*\[]", words)[0].strip()
        if base == "char" and stars and "const" in text.split("*")[0]:
            found, stars = "c.c_char_p", stars - 1
        elif base in self.callbacks:
            found = "cb_" + base
        elif base in self.numbers:
            found = self.numbers[base]
            if base == "char" and stars:
                found, stars = "c.c_void_p", stars - 1  # written by the callee
        elif base in self.structs:
            found = base
        else:  # void and objects
            if not stars:
                return "None"
            found, stars = "c.c_void_p", stars - 1
        for _ in range(stars):
            found = f"c.POINTER({found})"
        return found

    def function_type(self, callback):
        return "c.CFUNCTYPE(%s)" % ", ".join(
            [self.result_of(callback)] + [self.parameter(p) for p in callback["parameters"]])

    def result_of(self, callback):
        """A callback cannot return what ctypes converts: a text is an address there."""
        found = self.type_of(callback["result"])
        return "c.c_void_p" if found == "c.c_char_p" or "POINTER" in found else found

    def parameter(self, p):
        if p.get("callback"):
            return self.function_type(p["callback"])
        return self.type_of(p["type"])

    # ---- structs -----------------------------------------------------------------------------

    def fields(self, name, members):
        """The members; what is nested gets a class of its own first."""
        rows = []
        for m in members:
            if m.get("members"):
                inner = f"{name}_{m['name']}"
                base = "Union" if m["type"] == "union" else "Structure"
                self.put(f"class {inner}(c.{base}):\n    pass\n\n")
                self.fields(inner, m["members"])
                found = inner
            else:
                found = self.parameter(m)
            if "array" in m:
                found = f"{found} * {m['array']}"
            rows.append((m["name"] + "_" * keyword.iskeyword(m["name"]), found))
        self.put(f"{name}._fields_ = [")
        for member, found in rows:
            self.put(f'    ("{member}", {found}),')
        self.put("]")

    def embedded(self, members):
        for m in members:
            if m.get("members"):
                yield from self.embedded(m["members"])
            elif not m.get("callback") and "*" not in m["type"]:
                base = m["type"].replace("struct ", "")
                if base in self.structs:
                    yield base

    def put_structs(self):
        for name in self.structs:
            self.put(f"class {name}(c.Structure):\n    pass\n\n")
        for name, callback in self.callbacks.items():
            self.put(f"cb_{name} = {self.function_type(callback)}")
        done = set()

        def put(name):
            if name in done:
                return
            done.add(name)
            for needed in self.embedded(self.structs[name]["members"]):
                put(needed)
            self.fields(name, self.structs[name]["members"])

        for name in self.structs:
            put(name)

    # ---- the module --------------------------------------------------------------------------

    def text(self):
        self.put('# SPDX-License-Identifier: MIT')
        self.put('"""Generated from api.json and operators.json by generate.py; do not edit."""\n')
        self.put("import ctypes as c\n")
        self.put(f"ABI_MAJOR = {self.api['abi']['major']}")
        self.put(f"ABI_MINOR = {self.api['abi']['minor']}\n")
        for header in self.api["headers"]:
            for enum in header["enums"]:
                for value in enum["values"]:
                    self.put(f"{value['name']} = {value['value']}")
            for constant in header["constants"]:
                self.put(f"{constant['name']} = {constant['value']!r}")
        self.put("\nENUMS = {")
        for header in self.api["headers"]:
            for enum in header["enums"]:
                if enum["name"]:
                    values = {v["name"]: v["value"] for v in enum["values"]}
                    self.put(f"    {enum['name']!r}: {values!r},")
        self.put("}\n\n")
        self.put_structs()
        self.put("\nFUNCTIONS = {")
        for interface in self.api["interfaces"]:
            for f in interface["functions"]:
                if f["variadic"] or any(p["type"] == "va_list" for p in f["parameters"]):
                    continue
                types = [self.parameter(p) for p in f["parameters"]]
                result = self.type_of(f["result"])
                self.put(f"    {f['name']!r}: ({result}, [{', '.join(types)}]),")
        self.put("}\n")
        self.put("# name: (inputs, outputs, options, mathematics, help); an option is")
        self.put("# (name, type, default, required).")
        self.put("OPERATORS = {")
        for o in self.operators["operators"]:
            inputs = tuple(i["name"] for i in o["inputs"])
            options = tuple((x["name"], x["type"], x["default"], x["required"])
                            for x in o["options"])
            self.put(f"    {o['name']!r}: ({inputs!r}, {tuple(o['outputs'])!r}, {options!r},\n"
                     f"        {o['math']!r},\n        {o['help']!r}),")
        self.put("}")
        return "\n".join(self.lines) + "\n"


def load(folder, name):
    with open(os.path.join(folder, name), encoding="utf-8") as file:
        return json.load(file)


def generate(folder):
    return Generator(load(folder, "api.json"), load(folder, "operators.json")).text()


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: generate.py FOLDER OUT")
    text = generate(sys.argv[1])
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        file.write(text)


if __name__ == "__main__":
    main()
