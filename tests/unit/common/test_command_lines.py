#!/usr/bin/env python3
"""test_command_lines.py BIN DOCS COMPLETION: every command's --help, manual page and completion name the same options, and
the command takes each of them."""
import re
import subprocess
import sys
import unittest
from pathlib import Path

BIN, DOCS, COMPLETION = (Path(word) for word in sys.argv[1:4])
PROGRAMS = {"wlb": "wlb", "wlb-data": "wlb data", "wlb-worker": "wlb-worker"}  # file, and how its commands are called
PAGES = {"wlb": "wlb.1", "wlb calibrate": "wlb-calibrate.1", "wlb data": "wlb-data.1", "wlb-worker": "wlb-worker.1"}


def run(*words):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=20, check=False)


def complete(*words):
    """What bash offers for the last word."""
    script = f'. "$0"; COMP_WORDS=("$@"); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _wlb; printf "%s\\n" "${{COMPREPLY[@]}}"'
    return run("bash", "-c", script, COMPLETION, *words).stdout.split()


def commands():
    """(file, how it is called, command) of each command that --help of a program lists."""
    for file, name in PROGRAMS.items():
        listed = run(BIN / file, "--help").stdout.split("Commands:\n")[1].split("\n\n")[0]
        for command in re.findall(r"^  (\S+)", listed, re.M):
            if command != "data":  # a program with commands of its own
                yield file, name, command


def manual_page(name, command):
    """The options of the command in the page: of its section, where the page is about several commands."""
    text = (DOCS / PAGES.get(f"{name} {command}", PAGES[name])).read_text()
    for heading in (f".SS {name} {command}\n", f".SH {command.upper()} OPTIONS\n", ".SH OPTIONS\n"):
        if heading in text:
            end = r"^\.S[SH] " if heading.startswith(".SS") else r"^\.SH "
            section = re.split(end, text.split(heading)[1], maxsplit=1, flags=re.M)[0]
            return re.findall(r"^\.TP\n\\fB(\\-\\-\S+?)\\fR", section, re.M)
    return []


class CommandLines(unittest.TestCase):
    def test_the_same_options_everywhere(self):
        count = 0
        for file, name, command in commands():
            with self.subTest(f"{name} {command}"):
                options = re.findall(r"^  (--[a-z0-9-]+)", run(BIN / file, command, "--help").stdout, re.M)
                self.assertGreater(len(options), 0)
                self.assertEqual([o.replace("\\-", "-") for o in manual_page(name, command)], options)
                words = [word for word in complete(*name.split(), command, "") if word.startswith("--")]
                self.assertEqual(words, [*options, "--help"])
                self.assertEqual(complete(file, command, "--"), [*options, "--help"])
                count += 1
        self.assertEqual(count, 14)

    def test_the_command_takes_them(self):
        for file, name, command in commands():
            for option in re.findall(r"^  (--[a-z0-9-]+)", run(BIN / file, command, "--help").stdout, re.M):
                with self.subTest(f"{name} {command} {option}"):
                    # Where the option takes a text, the first --help is it; the second ends the command.
                    self.assertNotIn("is unknown", run(BIN / file, command, option, "--help", "--help").stderr)
            done = run(BIN / file, command, "--bogus")
            self.assertEqual(done.returncode, 2)
            self.assertIn(f"option '--bogus' is unknown or ambiguous; see '{name} {command} --help'", done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    def test_completion_of_commands_and_values(self):
        self.assertEqual(complete("wlb", "ru"), ["run", "runs"])
        self.assertEqual(complete("wlb", "help", "pl"), ["plan"])
        self.assertEqual(complete("wlb", "data", "b"), ["build"])
        self.assertEqual(complete("wlb-calibrate", "--dev"), ["--device", "--deviation"])
        self.assertEqual(complete("wlb-calibrate", "--device", ""), ["cpu", "cuda"])
        self.assertEqual(complete("wlb", "db", "m"), ["migrate"])
        self.assertEqual(complete("wlb-worker", "t"), ["train"])
        self.assertEqual(complete("wlb", "pack", "--seq-length", "8", "--strategy", ""), ["balanced", "greedy", "fixed", "plain"])
        self.assertEqual(complete("wlb", "shard", "--strategy", "per"), ["per-document", "per-sequence"])
        self.assertIn("/tmp", complete("wlb", "run", "--spool-dir", "/tm"))
        self.assertEqual(complete("wlb", "pack", "--svg", ""), [])  # then bash offers files

    def test_nothing_is_left_of_the_templates(self):
        for path in (COMPLETION, *(DOCS / page for page in PAGES.values())):
            self.assertNotRegex(path.read_text(), r"@wlb[^@\n]*@")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
