#!/usr/bin/env python3
"""Writes a file as a C array: embed.py INPUT OUTPUT NAME HEADER, where HEADER declares it."""
import sys

source, target, name, header = sys.argv[1:]
data = open(source, "rb").read()
with open(target, "w") as out:
    out.write(f'#include <stddef.h>\n#include "{header}"\n\n')
    out.write(f"const unsigned char {name}[] = {{\n")
    for at in range(0, len(data), 20):
        out.write(",".join(str(b) for b in data[at : at + 20]) + ",\n")
    out.write(f"}};\nconst size_t {name}_size = sizeof {name};\n")
