#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# make_unicode.py FILE: writes unicode_classes.h, the ranges of letters and numbers of Unicode. They
# come from the package regex, whose Unicode is newer than that of Python itself.
import sys

import regex


def ranges(pattern):
    found = []
    for point in range(0x110000):
        if 0xD800 <= point < 0xE000 or not regex.match(pattern, chr(point)):
            continue
        if found and found[-1][1] == point - 1:
            found[-1][1] = point
        else:
            found.append([point, point])
    return found


def write(out, name, what, pattern):
    rows = [f"{{ 0x{a:X}, 0x{b:X} }}," for a, b in ranges(pattern)]
    out.write(f"/* {what} */\nstatic const struct range {name}[] = {{\n")
    line = "   "
    for row in rows:
        if len(line) + 1 + len(row) > 100:
            out.write(line + "\n")
            line = "   "
        line += " " + row
    out.write(line + "\n};\n")


def main():
    with open(sys.argv[1], "w", encoding="utf-8") as out:
        out.write("/* SPDX-License-Identifier: MIT\n *\n * Ranges of code points by their general "
                  "category, written by make_unicode.py with regex\n"
                  f" * {regex.__version__}. */\n\n/* clang-format off */\n"
                  "struct range {\n    uint32_t first, last;\n};\n\n")
        write(out, "letters", "Categories L*.", r"\p{L}")
        out.write("\n")
        write(out, "digits", "Categories N*.", r"\p{N}")


main()
