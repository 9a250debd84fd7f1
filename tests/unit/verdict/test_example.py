#!/usr/bin/env python3
"""The example of docs/verdicts.md is the program that is compiled, and that names the rank that it makes slow.
Usage: test_example.py PROGRAM SOURCE PAGE"""
import subprocess
import sys

program, source, page = sys.argv[1:]
with open(source, encoding="utf-8") as file:
    example = file.read()
with open(page, encoding="utf-8") as file:
    if example not in file.read():
        sys.exit(f"{page}: does not have the text of {source}")
told = subprocess.run([program], capture_output=True, text=True, check=True).stdout
print(told, end="")
if "slow compute: rank 3 (node 0)" not in told:
    sys.exit(f"{program}: does not name rank 3")
