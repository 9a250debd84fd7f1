"""Which unit uses a function or variable of which other, read with nm from the object files of a build folder."""
import json
import os
import re
import subprocess

from source_tree import unit_of

NM_LINE = re.compile(r"^(.*):(?:[0-9a-f]+)?\s+([A-Za-z])\s+(\S+)$")


def parse_nm(output):
    """object file -> (defined, used), from what `nm -A` prints: the global symbols that the file defines, and those that it
    takes from others."""
    symbols = {}
    for match in map(NM_LINE.match, output.splitlines()):
        path, kind, name = match.groups()
        defined, used = symbols.setdefault(path, (set(), set()))
        if kind in "Uw":
            used.add(name)
        elif kind.isupper():
            defined.add(name)
    return symbols


def compiled_objects(root, build):
    """(source, object file) of every compilation of a source of the tree, as the build's compile_commands.json has them."""
    root = os.path.realpath(root)
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
        commands = json.load(file)
    for command in commands:
        source = os.path.relpath(os.path.realpath(command["file"]), root)
        output = re.search(r" -o (\S+)", command["command"])
        if not source.startswith("..") and output:
            yield source, os.path.join(command["directory"], output.group(1))


def read_objects(root, build, sources):
    """Lists of (unit, defined, used), one for each object file that was built from one of `sources`."""
    unit = {path: unit_of(source) for source, path in compiled_objects(root, build) if source in sources and os.path.exists(path)}
    if not unit:
        return []
    output = subprocess.run(["nm", "-A", "--", *unit], capture_output=True, text=True, check=True).stdout
    return [(unit[path], defined, used) for path, (defined, used) in parse_nm(output).items()]


def symbol_uses(objects):
    """(using unit, defining unit, symbol). A symbol that several units define (a program's main, a function that two programs
    each have) names none of them, and is left out."""
    owners = {}
    for unit, defined, _ in objects:
        for name in defined:
            owners.setdefault(name, set()).add(unit)
    owner = {name: units.pop() for name, units in owners.items() if len(units) == 1}
    uses = {(unit, owner[name], name) for unit, _, used in objects for name in used if name in owner}
    return sorted(use for use in uses if use[0] != use[1])
