#!/usr/bin/env python3
"""The shared library gives what wlb.h declares, all of it and nothing else. Usage: test_exports.py LIBRARY WLB_H"""
import re
import subprocess
import sys

library, header = sys.argv[1:]
with open(header, encoding="utf-8") as file:
    text = re.sub(r"/\*.*?\*/", "", file.read(), flags=re.DOTALL)
declared = set(re.findall(r"^[a-z][^\n(]*?\b(wlb_[a-z0-9_]+)\(", text, flags=re.MULTILINE))
symbols = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout
exported = {line.split()[-1] for line in symbols.splitlines()}
for name in sorted(declared - exported):
    print(f"{name}: declared in {header}, missing in {library}")
for name in sorted(exported - declared):
    print(f"{name}: in {library}, not declared in {header}")
print(f"{len(declared)} declared, {len(exported)} exported")
sys.exit(declared != exported or not declared)
