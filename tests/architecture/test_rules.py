#!/usr/bin/env python3
"""The rules of the architecture on small trees: each is broken once, and found."""
import os
import re
import shutil
import subprocess
import tempfile
import unittest

import repeats
import rules
import symbols
import words
from source_tree import SourceTree

TABLE = """# Page

## Folders, and what each may include
What the table means.

| folder | subject | may include |
|---|---|---|
| `low` | a | nothing |
| `high` | b | `low` |
| `high/inner` | c | `low/public.h` |

## Another section
| `elsewhere` | is no row | nothing |
"""


def header(path, *lines):
    guard = re.sub(r"\W", "_", path).upper()
    return "\n".join(["/* A comment. */", f"#ifndef {guard}", f"#define {guard}", *lines, "#endif", ""])


def include(path):
    return f'#include "{path}"'


def tree(**changes):
    """A tree that keeps the rules of TABLE, with the files of `changes` (__ for /, ___ for .) added or replaced."""
    files = {path: header(path) for path in ("low/public.h", "low/private.h", "high/a.h", "high/b.h")}
    files["high/a.c"] = include("high/a.h") + "\n#include <stdio.h>\n" + include("low/private.h") + "\n"
    files["high/inner/c.c"] = include("low/public.h") + "\n"
    files.update({name.replace("___", ".").replace("__", "/"): text for name, text in changes.items()})
    return SourceTree(files)


class Table(unittest.TestCase):
    def test_rows_of_the_section_alone(self):
        self.assertEqual(rules.read_table(TABLE), {"low": set(), "high": {"low"}, "high/inner": {"low/public.h"}})

    def test_a_row_without_a_folder_continues_the_one_above(self):
        continued = TABLE.replace("| `high` | b | `low` |", "| `high` | b | `low` |\n| | | `low/a.h`, `lower` |\n| | | `lowest` |")
        self.assertEqual(rules.read_table(continued)["high"], {"low", "low/a.h", "lower", "lowest"})

    def test_names_in_braces_are_several(self):
        several = TABLE.replace("| `high` | b | `low` |", "| `high` | b | `low/{a.h,b}`, `lower` |")
        self.assertEqual(rules.read_table(several)["high"], {"low/a.h", "low/b", "lower"})

    def test_malformed_tables_are_refused(self):
        for wrong in ("", TABLE.replace("Folders, and", "Rooms, and"), TABLE.replace("| subject ", "| what "),
                      TABLE.replace("| a | nothing |", "| a | |"), TABLE.replace("| b |", "|  |"),
                      TABLE.replace("`high/inner`", "`low`"), TABLE.replace("| `low` | a |", "| | | `lower` |\n| `low` | a |"),
                      TABLE.replace("| nothing |\n| `high`", "| nothing |\n| | | `lower` |\n| `high`")):
            with self.subTest(table=wrong), self.assertRaises(rules.TableError):
                rules.read_table(wrong)


class Folders(unittest.TestCase):
    def check(self, sources, table=TABLE):
        return rules.check_folders(sources, rules.read_table(table))

    def test_a_tree_as_the_table_says(self):
        self.assertEqual(self.check(tree()), [])

    def test_a_folder_without_a_row(self):
        self.assertEqual(self.check(tree(new__x___c="")), ["new: has sources, but no row in the table"])

    def test_a_row_without_sources(self):
        self.assertEqual(self.check(tree(), TABLE.replace("| `high` |", "| `gone` | d | nothing |\n| `high` |")),
                         ["gone: has a row in the table, but no sources"])

    def test_a_row_that_allows_what_is_not_there(self):
        self.assertEqual(self.check(tree(), TABLE.replace("low/public.h", "low/gone.h")),
                         ["high/inner: its row allows low/gone.h, which is not there"])


class Includes(unittest.TestCase):
    def check(self, sources, table=TABLE):
        return rules.check_includes(sources, rules.read_table(table))

    def test_a_tree_as_the_table_says(self):
        self.assertEqual(self.check(tree()), [])

    def test_a_forbidden_include_is_found(self):
        found = self.check(tree(low__d___c=include("high/a.h")))
        self.assertEqual(found, ["low/d.c: includes high/a.h, which its row in the table does not allow"])

    def test_a_named_header_allows_no_other_of_its_folder(self):
        found = self.check(tree(high__inner__d___c="  #  include  \"low/private.h\"\n"))
        self.assertEqual(found, ["high/inner/d.c: includes low/private.h, which its row in the table does not allow"])

    def test_a_folder_allows_nothing_of_the_folders_below_it(self):
        found = self.check(tree(low__below__e___h=header("low/below/e.h"), high__d___c=include("low/below/e.h")))
        self.assertEqual(found, ["high/d.c: includes low/below/e.h, which its row in the table does not allow"])

    def test_a_path_that_does_not_begin_at_the_root(self):
        found = self.check(tree(high__d___c=include("a.h")))
        self.assertEqual(found, ['high/d.c: includes "a.h", which is no file of the tree; paths begin at its root'])

    def test_what_is_allowed_is_needed(self):
        found = self.check(tree(high__a___c=""))
        self.assertEqual(found, ["high: its row allows low, which no file includes"])


class Differences(unittest.TestCase):
    PAGE = f"{rules.DIFFERENCES}\n| what | change | from |\n|---|---|---|\n| `slurm_load_job`, `slurm_step_id_t` | `slurm_x` | 26.05 |\n"

    def check(self, **changes):
        return rules.check_differences(tree(**changes), rules.read_differences(self.PAGE))

    def test_the_functions_of_the_table(self):
        self.assertEqual(rules.read_differences(self.PAGE), {"slurm_load_job"})
        with self.assertRaises(rules.TableError):
            rules.read_differences(TABLE)

    def test_a_call_is_found_outside_of_the_header_alone(self):
        self.assertEqual(self.check(coordinator__slurm__compat___h="slurm_load_job(a, b);",
                                    low__d___c="wlb_slurm_load_job(a); /* slurm_load_job */"), [])
        self.assertEqual(self.check(low__d___c="x = slurm_load_job(&reply, 1);"),
                         ["low/d.c: calls slurm_load_job, which differs between releases of Slurm; call a function of "
                          "coordinator/slurm/compat.h"])


class Guards(unittest.TestCase):
    def test_guards_of_their_own(self):
        self.assertEqual(rules.check_guards(tree()), [])

    def test_two_headers_with_one_guard(self):
        found = rules.check_guards(tree(low__copy___h=header("low/public.h")))
        self.assertEqual(found, ["low/public.h: has the guard LOW_PUBLIC_H of low/copy.h; who includes both loses one"])

    def test_a_header_without_a_guard(self):
        for text in ("", "int x;\n", "#ifndef A\n#define B\n#endif\n"):
            with self.subTest(text=text):
                self.assertEqual(rules.check_guards(tree(low__x___h=text)), ["low/x.h: has no include guard"])


class Circles(unittest.TestCase):
    def circles(self, sources, uses=()):
        return rules.find_circles(rules.unit_graph(sources, uses))

    def test_none_in_a_tree_of_layers(self):
        self.assertEqual(self.circles(tree(), [("high/a", "low/public", "f")]), [])

    def test_of_includes(self):
        sources = tree(high__a___h=header("high/a.h", include("high/b.h")), high__b___c=include("high/a.h"))
        self.assertEqual(self.circles(sources), [["high/a", "high/b"]])

    def test_of_an_include_and_a_symbol(self):
        sources = tree(high__b___c=include("high/a.h"))
        self.assertEqual(self.circles(sources), [])
        self.assertEqual(self.circles(sources, [("high/a", "high/b", "help")]), [["high/a", "high/b"]])

    def test_of_symbols_over_a_third(self):
        uses = [("high/a", "high/b", "f"), ("high/b", "low/c", "g"), ("low/c", "high/a", "h"), ("low/x", "high/a", "h")]
        self.assertEqual(self.circles(tree(), uses), [["high/a", "high/b", "low/c"]])

    def test_two_apart_are_two(self):
        uses = [("a", "b", "f"), ("b", "a", "g"), ("c", "d", "h"), ("d", "c", "i"), ("a", "c", "j")]
        self.assertEqual(self.circles(tree(), uses), [["a", "b"], ["c", "d"]])

    def test_the_finding_names_every_reason(self):
        found = rules.check_circles(tree(high__b___c=include("high/a.h")), [("high/a", "high/b", "help")])
        self.assertEqual(found, ["circle of high/a, high/b:\n    high/a uses help of high/b\n    high/b.c includes high/a.h"])

    def test_of_folders_whose_units_have_none(self):
        self.assertEqual(rules.check_folder_circles(tree()), [])
        sources = tree(low__other___c=include("high/b.h"))
        self.assertEqual(rules.check_circles(sources, []), [])
        self.assertEqual(rules.check_folder_circles(sources),
                         ["circle of high, low:\n    high/a.c includes low/private.h\n    low/other.c includes high/b.h"])


class Symbols(unittest.TestCase):
    def test_a_name_that_two_units_define_is_nobodys(self):
        objects = [("a", {"main", "f"}, {"g"}), ("b", {"main", "g"}, {"f", "printf"}), ("c", set(), {"main"})]
        self.assertEqual(symbols.symbol_uses(objects), [("a", "b", "g"), ("b", "a", "f")])

    def test_a_unit_that_is_built_twice_is_one(self):
        objects = [("a", {"f_float"}, {"g"}), ("a", {"f_double"}, {"g"}), ("b", {"g"}, {"f_float"})]
        self.assertEqual(symbols.symbol_uses(objects), [("a", "b", "g"), ("b", "a", "f_float")])

    @unittest.skipUnless(shutil.which("cc"), "no C compiler")
    def test_objects_of_a_compiler(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x.o")
            source = "int used(void); extern int variable; static int own(void) { return used(); } int given = 3;" \
                     "int defined(void) { return own() + variable; }"
            subprocess.run(["cc", "-x", "c", "-c", "-o", path, "-"], input=source, text=True, check=True)
            output = subprocess.run(["nm", "-A", path], capture_output=True, text=True, check=True).stdout
        defined, used = symbols.parse_nm(output)[path]
        self.assertEqual(defined, {"given", "defined"})
        self.assertEqual(used - {"_GLOBAL_OFFSET_TABLE_"}, {"used", "variable"})


class Repeats(unittest.TestCase):
    BLOCK = [f"step({i});" for i in range(10)]

    def find(self, one, other):
        return repeats.find_repeats({"a.c": "\n".join(one), "b.c": "\n".join(other)})

    def test_ten_lines_are_a_repeat_and_nine_are_none(self):
        self.assertEqual(self.find(["x;", *self.BLOCK], ["y;", "z;", *self.BLOCK]), [("a.c", 2, "b.c", 3, 10)])
        self.assertEqual(self.find(self.BLOCK[:9], self.BLOCK[:9]), [])

    def test_indentation_comments_and_blank_lines_do_not_hide_one(self):
        other = [line for text in self.BLOCK for line in ("\t" + text + " // why", "/* a", " * b */", "")]
        self.assertEqual(self.find(self.BLOCK, other), [("a.c", 1, "b.c", 1, 10)])

    def test_a_longer_one_is_told_once(self):
        longer = self.BLOCK + ["more();", "still();"]
        self.assertEqual(self.find(longer, longer), [("a.c", 1, "b.c", 1, 12)])

    def test_within_a_file(self):
        self.assertEqual(repeats.find_repeats({"a.c": "\n".join(self.BLOCK + ["x;"] + self.BLOCK)}),
                         [("a.c", 1, "a.c", 12, 10)])

    def test_a_file_of_equal_lines_repeats_no_block_that_overlaps_itself(self):
        self.assertEqual(repeats.find_repeats({"a.c": "\n".join(["x;"] * 15)}), [])


class Words(unittest.TestCase):
    def test_string_literals_and_documents(self):
        source = '/* A job that was queued again, "quoted". */\nchar quote = \'"\';\nputs("\\"job %u was queued "\n     "again");\n'
        found = words.check_words({"a.c": source}, {"a.md": "one\nafter a\nloss\n", "b.md": "after all losses"})
        self.assertEqual(found, ["a.c:3: 'queued again': write requeued",
                                 "a.md:2: 'after a loss': write after a failure: a loss is a number of the training"])


if __name__ == "__main__":
    unittest.main()
