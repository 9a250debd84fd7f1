#!/usr/bin/env python3
"""The program of docs/balance.md compiles without warnings, with the shared library and with the archive, and packs its documents.
Usage: test_document.py CC DOCUMENT INCLUDE_FOLDER SHARED_LIBRARY ARCHIVE"""
import os
import re
import subprocess
import sys
import tempfile

compiler, document, include, shared, archive = sys.argv[1:]
with open(document, encoding="utf-8") as file:
    programs = re.findall(r"^```c\n(.*?)^```$", file.read(), flags=re.DOTALL | re.MULTILINE)
assert len(programs) == 1, f"{document} has {len(programs)} programs in C: this test compiles one"
with tempfile.TemporaryDirectory() as folder:
    source, program = os.path.join(folder, "pack.c"), os.path.join(folder, "pack")
    with open(source, "w", encoding="utf-8") as file:
        file.write(programs[0])
    for libraries in [shared, "-Wl,-rpath," + os.path.dirname(shared)], [archive, "-lm"]:
        flags = ["-std=c17", "-O2", "-Wall", "-Wextra", "-Werror", f"-I{include}"]
        subprocess.run([compiler, *flags, source, *libraries, "-o", program], check=True)
        output = subprocess.run([program], capture_output=True, text=True, check=True).stdout
        print(output, end="")
        packed = sorted(int(line.rpartition(" ")[2]) for line in output.splitlines())
        assert packed == [0, 1, 2], f"documents packed: {packed}"
