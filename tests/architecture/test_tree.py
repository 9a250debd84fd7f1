#!/usr/bin/env python3
"""The tree keeps docs/architecture.md: folders and includes, no circles of units or folders, guards, no repeated blocks, words.

WLB_BUILD_DIR is a build of this tree, whose object files say who calls whom; without it circles are those of includes.
"""
import os
import pathlib
import re
import unittest

import repeats
import rules
import symbols
import words
from source_tree import SourceTree

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
BUILD = os.environ.get("WLB_BUILD_DIR")


class Tree(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.tree = SourceTree.read(ROOT)
        with open(os.path.join(ROOT, "docs", "architecture.md"), encoding="utf-8") as file:
            cls.page = file.read()
        cls.table = rules.read_table(cls.page)

    def expect_none(self, findings):
        self.assertFalse(findings, "\n" + "\n".join(findings))

    def test_every_folder_is_in_the_table(self):
        self.expect_none(rules.check_folders(self.tree, self.table))

    def test_includes_are_those_that_the_table_allows(self):
        self.expect_none(rules.check_includes(self.tree, self.table))

    def test_no_two_headers_have_one_guard(self):
        self.expect_none(rules.check_guards(self.tree))

    def test_no_units_need_each_other(self):
        uses = []
        if BUILD:
            uses = symbols.symbol_uses(symbols.read_objects(ROOT, BUILD, self.tree.files))
            self.assertTrue(uses, f"{BUILD}: has no object file of this tree; build it first")
        self.expect_none(rules.check_circles(self.tree, uses))

    def test_no_folders_include_each_other(self):
        self.expect_none(rules.check_folder_circles(self.tree))

    def test_functions_that_the_page_names_are_in_their_files(self):
        rows = re.findall(r"^\d+\. `([\w/]+\.c)` `(\w+)`:", self.page, re.MULTILINE)
        self.assertGreater(len(rows), 20)
        missing = []
        for path, function in rows:
            file = pathlib.Path(ROOT, path)
            text = file.read_text(encoding="utf-8") if file.is_file() else ""
            if not re.search(rf"^[a-z][^;\n]*\b{function}\(", text, re.MULTILINE):
                missing.append(f"{path}: has no function {function}, which docs/architecture.md names")
        self.expect_none(missing)

    def test_only_compat_h_depends_on_the_release_of_slurm(self):
        page = pathlib.Path(ROOT, "docs", "slurm-versions.md").read_text(encoding="utf-8")
        self.expect_none(rules.check_differences(self.tree, rules.read_differences(page)))

    def test_no_text_has_a_phrase_that_was_misread(self):
        pages = [*pathlib.Path(ROOT).glob("*.md"), *pathlib.Path(ROOT, "docs").glob("*.md"), *pathlib.Path(ROOT, "docs", "man").iterdir()]
        documents = {str(page.relative_to(ROOT)): page.read_text(encoding="utf-8") for page in pages}
        self.assertGreater(len(documents), 15)
        self.expect_none(words.check_words(self.tree.files, documents))

    def test_no_block_of_lines_stands_twice(self):
        found = repeats.find_repeats(self.tree.files)
        self.expect_none([f"{path}:{line} repeats {lines} lines of {first}:{first_line}"
                          for first, first_line, path, line, lines in found])


if __name__ == "__main__":
    unittest.main()
