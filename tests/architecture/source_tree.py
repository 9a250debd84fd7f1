"""The C sources of a tree: its units, what they include, and their header guards.

A unit is a .c (or .cu) file and the header of the same name beside it; it is named by its path without the suffix. Units that are
built several times with different macros, as those of kernels/cpu are, are one unit.
"""
import os
import re

SUFFIXES = (".c", ".h", ".cu", ".cuh")
# Where sources lie that no folder of the product includes.
NOT_PRODUCT = ("tests", "scripts", "examples", "docs", "build")

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"', re.MULTILINE)
GUARD = re.compile(r"\A(?:\s|/\*.*?\*/|//[^\n]*\n)*#[ \t]*ifndef[ \t]+(\w+)\s*\n[ \t]*#[ \t]*define[ \t]+\1\b", re.DOTALL)


def unit_of(path):
    return os.path.splitext(path)[0]


def folder_of(path):
    return os.path.dirname(path)


def _is_product(folder):
    return not folder.startswith(".") and not any(folder == name or folder.startswith(name + "-") for name in NOT_PRODUCT)


class SourceTree:
    """files: path -> text, paths relative to the root; comments are part of the text."""

    def __init__(self, files):
        self.files = files

    @classmethod
    def read(cls, root):
        files = {}
        for top in sorted(os.listdir(root)):
            if os.path.isdir(os.path.join(root, top)) and _is_product(top):
                for folder, _, names in os.walk(os.path.join(root, top)):
                    for name in names:
                        if name.endswith(SUFFIXES):
                            path = os.path.join(folder, name)
                            with open(path, encoding="utf-8") as file:
                                files[os.path.relpath(path, root)] = file.read()
        return cls(files)

    def folders(self):
        return {folder_of(path) for path in self.files}

    def includes(self):
        """(file, included path) of every include that is written with quotes, in the order of the files."""
        return [(path, included) for path in sorted(self.files) for included in INCLUDE.findall(self.files[path])]

    def guards(self):
        """path -> guard macro of each header; None where a header has none."""
        found = {path: GUARD.match(text) for path, text in self.files.items() if path.endswith((".h", ".cuh"))}
        return {path: match.group(1) if match else None for path, match in found.items()}
