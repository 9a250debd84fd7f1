#!/usr/bin/env python3
"""test_command_lines.py BUILD: every command's --help, manual page and completion name the same options, and the command takes
each of them."""
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

BUILD = Path(sys.argv[1])
BIN, DOCS, COMPLETION = BUILD / "bin", BUILD / "docs", BUILD / "coordinator/wlb/completion.bash"
PROGRAMS = {"wlb": "wlb", "wlb-ckpt": "wlb ckpt", "wlb-data": "wlb data", "wlb-worker": "wlb-worker"}  # file, and how its commands are called
SINGLE = {"wlbd": BIN / "wlbd", "wlb calibrate": BIN / "wlb-calibrate", "wlb check-links": BIN / "wlb-check-links",
          "wlb check-node": BIN / "wlb-check-node", "wlb export": BIN / "wlb-export", "wlb-agent": BUILD / "libexec/wlb/wlb-agent",
          "wlb-stacks": BUILD / "libexec/wlb/wlb-stacks"}  # programs without commands
PAGES = {"wlb": "wlb.1", "wlb top": "wlb-top.1", "wlb stacks": "wlb-stacks.1", "wlb ckpt": "wlb-ckpt.1", "wlb data": "wlb-data.1", "wlb-worker": "wlb-worker.1", "wlb calibrate": "wlb-calibrate.1", "wlb check-links": "wlb-check-links.1", "wlb check-node": "wlb-check-node.1", "wlb export": "wlb-export.1", "wlbd": "wlbd.8", "wlb-agent": "wlb-agent.8", "wlb-stacks": "wlb-stacks.8"}
WITHOUT_OPTIONS = ["wlb ckpt verify"]  # it has arguments alone
HELP_ROW = re.compile(r"^  (?:-\w, )?(--[a-z0-9_-]+)", re.M)
MANUAL_ROW = re.compile(r"^\.TP\n(?:\\fB\\-\w\\fR, )?\\fB(\\-\\-\S+?)\\fR", re.M)


def run(*words):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=20, check=False)


def complete(*words):
    """What bash offers for the last word."""
    script = f'. "$0"; COMP_WORDS=("$@"); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _wlb; printf "%s\\n" "${{COMPREPLY[@]}}"'
    return run("bash", "-c", script, COMPLETION, *words).stdout.split()


def commands():
    """(command line, how it is called, page) of each command that --help of a program lists, and of each program without any."""
    for file, name in PROGRAMS.items():
        listed = run(BIN / file, "--help").stdout.split("Commands:\n")[1].split("\n\n")[0]
        for command in re.findall(r"^  (\S+)", listed, re.M):
            if command not in ("ckpt", "data", "calibrate", "check-links", "check-node", "export"):  # in PROGRAMS, or in SINGLE
                yield [BIN / file, command], f"{name} {command}", PAGES.get(f"{name} {command}", PAGES[name])
    for name, path in SINGLE.items():
        yield [path], name, PAGES[name]


def manual_page(name, page):
    """The options of the command in the page: of its section, where the page is about several commands."""
    text = (DOCS / page).read_text()
    for heading in (f".SS {name}\n", f".SH {name.split()[-1].upper()} OPTIONS\n", ".SH OPTIONS\n"):
        if heading in text:
            end = r"^\.S[SH] " if heading.startswith(".SS") else r"^\.SH "
            section = re.split(end, text.split(heading)[1], maxsplit=1, flags=re.M)[0]
            return [option.replace("\\-", "-") for option in MANUAL_ROW.findall(section)]
    return []


def synopsis(page):
    """The lines of the page's SYNOPSIS without the marks of troff."""
    text = (DOCS / page).read_text().split(".SH SYNOPSIS\n")[1].split(".SH ")[0]
    return re.sub(r"\\f[BIR]", "", text).replace("\\-", "-").splitlines()


class CommandLines(unittest.TestCase):
    def test_the_same_options_everywhere(self):
        count = 0
        for line, name, page in commands():
            with self.subTest(name):
                shown = run(*line, "--help").stdout
                options = HELP_ROW.findall(shown)
                self.assertEqual(len(options) == 0, name in WITHOUT_OPTIONS)
                self.assertEqual(manual_page(name, page), options)
                self.assertIn(re.search("^Usage: (.*)", shown)[1], synopsis(page))
                words = [word for word in complete(*name.split(), "") if word.startswith("--")]
                self.assertEqual(words, [*options, "--help"])
                self.assertEqual(complete(*line, "--"), [*options, "--help"])
                count += 1
        self.assertEqual(count, 40)

    def test_the_command_takes_them(self):
        for line, name, _ in commands():
            for option in HELP_ROW.findall(run(*line, "--help").stdout):
                with self.subTest(f"{name} {option}"):
                    # Where the option takes a text, the first --help is it; the second ends the command.
                    self.assertNotIn("is unknown", run(*line, option, "--help", "--help").stderr)
            done = run(*line, "--bogus")
            self.assertEqual(done.returncode, 2)
            self.assertIn(f"option '--bogus' is unknown or ambiguous; see '{name} --help'", done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    def test_version(self):
        for name, path in {**{file: BIN / file for file in PROGRAMS}, **SINGLE}.items():
            done = run(path, "--version")
            self.assertEqual(done.returncode, 0)
            self.assertRegex(done.stdout, rf"^{name} [0-9]+\.[0-9]+\.[0-9]+\n$")

    def test_completion_of_commands_and_values(self):
        self.assertEqual(complete("wlb", "ru"), ["run", "runs"])
        self.assertEqual(complete("wlb", "help", "pl"), ["plan"])
        self.assertEqual(complete("wlb", "data", "b"), ["build"])
        self.assertEqual(complete("wlb", "ckpt", "v"), ["verify"])
        self.assertEqual(complete("wlb-calibrate", "--dev"), ["--device", "--deviation"])
        self.assertEqual(complete("wlb-calibrate", "--device", ""), ["cpu", "cuda"])
        self.assertEqual(complete("wlb-check-node", "--only", "m"), ["memory"])
        self.assertIn("/tmp", complete("wlb", "check-node", "--dir", "/tm"))
        self.assertEqual(complete("wlb", "db", "m"), ["migrate"])
        self.assertEqual(complete("wlb-worker", "t"), ["train"])
        self.assertEqual(complete("wlb", "pack", "--seq-length", "8", "--packing", ""), ["balanced", "greedy", "fixed", "plain", "dynamic"])
        self.assertEqual(complete("wlb", "shard", "--cp-sharding", "per"), ["per-document", "per-sequence"])
        self.assertIn("/tmp", complete("wlb", "run", "--spool-dir", "/tm"))
        self.assertEqual(complete("wlb", "pack", "--svg", ""), [])  # then bash offers files
        self.assertEqual(complete("wlbd", "-c", ""), [])

    def test_wlb_finds_its_programs(self):
        """Beside itself, also where it is called through a link. One that is not there is named, with its path."""
        helped = run(BIN / "wlb-plan", "--help")
        self.assertIn("Usage: wlb plan ", helped.stdout)
        with tempfile.TemporaryDirectory() as folder:
            linked, copied = Path(folder, "linked"), Path(folder, "wlb")
            linked.symlink_to(BIN / "wlb")
            shutil.copy(BIN / "wlb", copied)
            for words in ([BIN / "wlb", "plan", "--help"], [linked, "plan", "--help"], [linked, "help", "plan"]):
                done = run(*words)
                self.assertEqual((done.returncode, done.stdout, done.stderr), (0, helped.stdout, ""))
            for words in (["plan", "--help"], ["help", "plan"], ["check-node"]):
                done = run(copied, *words)
                program = Path(folder).resolve() / f"wlb-{words[-1] if words[0] == 'help' else words[0]}"
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertRegex(done.stderr, rf"^wlb: {program}: No such file or directory; install it from the release of this wlb, [0-9.]+\n$")
            done = run(copied, "bogus")
            self.assertEqual((done.returncode, done.stderr), (2, "wlb: command 'bogus' is unknown; see 'wlb --help'\n"))

    def test_the_nearest_name_is_told(self):
        for words, told in ((["rusn"], "wlb: command 'rusn' is unknown; the nearest is 'runs'; see 'wlb --help'"),
                            (["calibrat"], "wlb: command 'calibrat' is unknown; the nearest is 'calibrate'; see 'wlb --help'"),
                            (["help", "shwo"], "wlb: command 'shwo' is unknown; the nearest is 'show'; see 'wlb --help'"),
                            (["runs", "--limt=5"],
                             "wlb runs: option '--limt=5' is unknown or ambiguous; the nearest is '--limit'; see 'wlb runs --help'"),
                            (["runs", "--s"], "wlb runs: option '--s' is unknown or ambiguous; see 'wlb runs --help'")):
            done = run(BIN / "wlb", *words)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (2, "", told + "\n"))

    def test_nothing_is_left_of_the_templates(self):
        for path in (COMPLETION, *(DOCS / page for page in PAGES.values())):
            self.assertNotRegex(path.read_text(), r"@wlb[^@\n]*@")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
