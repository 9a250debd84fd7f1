#!/usr/bin/env python3
"""What the documents say beside what the programs say."""
import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = os.environ.get("WLB_BUILD_DIR")
PAGES = [ROOT / "README.md", ROOT / "dashboards/README.md", *sorted((ROOT / "docs").glob("*.md"))]


def read(path):
    return (ROOT / path).read_text(encoding="utf-8")


def section(page, title):
    """The text of a page below that heading, up to the next one."""
    parts = re.split(r"^## (.*)$", read(page), flags=re.MULTILINE)
    return parts[parts.index(title) + 1]


class Administration(unittest.TestCase):
    def test_the_ports_of_slurm_are_listed(self):
        rows = [line.split("|") for line in section("docs/administration.md", "Ports").splitlines() if line.startswith("|")]
        for port, of, caller in (("SlurmctldPort", "slurmctld", "compute nodes"), ("SlurmdPort", "slurmd", "wlbd")):
            row = next((row for row in rows if port in row[1]), None)
            self.assertIsNotNone(row, f"{port}: no port of docs/administration.md")
            self.assertIn(of, row[2])
            self.assertIn(caller, row[3])

    def test_settings_that_the_doctor_asks_for_are_listed(self):
        """Those of slurm.conf and mpi.conf that it reads, with the values of its remedies, and Slurm's plugins."""
        source = read("coordinator/wlb/doctor/slurm.c")
        settings = set(re.findall(r'value_of\(config, "(\w+)"\)', source)) | set(re.findall(r"\b[A-Z]+[a-z]\w*=\w+", source)) | {"mpi_pmix"}
        self.assertGreaterEqual(settings, {"PMIxCollFence=ring", "ReturnToService=2", "TreeWidth"})
        listed = section("docs/administration.md", "slurm.conf and packages")
        self.assertEqual([setting for setting in sorted(settings) if setting not in listed], [])

    def test_commands_of_postgresql_name_their_account(self):
        """As root they would ask for a role of that name. Commands in what the demo prints are for a PostgreSQL of its own, which
        its environment names."""
        command = re.compile(r"(?<!-u postgres )\b(?:createuser|createdb|dropdb|dropuser|pg_dump|pg_restore|psql) -?\w.*")
        pages = [path for path in PAGES if path.name != "demo.md"]
        self.assertIn("sudo -u postgres createuser", read("docs/install.md"))
        found = {str(path): command.findall(path.read_text(encoding="utf-8")) for path in pages}
        self.assertEqual({path: commands for path, commands in found.items() if commands}, {})


class JobOptions(unittest.TestCase):
    def test_the_manual_page_has_every_option_with_its_variable(self):
        table, page = read("common/job_options.c"), read("docs/man/spank_wlb.8").replace("\\-", "-")
        flags, variables = re.findall(r'\.flag = "(--wlb-[a-z-]+)"', table), re.findall(r'\.variable = "SLURM_(WLB_[A-Z_]+)"', table)
        self.assertGreaterEqual(len(flags), 7)
        self.assertEqual(len(variables), len(flags))
        self.assertEqual([flag for flag in flags if not re.search(rf"^\.B {flag}(?:=|\\fR)", page, re.MULTILINE)], [])
        self.assertEqual([name for name in variables if not re.search(rf"^\.B WLB_LAYOUT .*\b{name}\b|^\.B {name} ", page, re.MULTILINE)], [])


class Models(unittest.TestCase):
    def test_the_table_of_published_models_is_that_of_the_fixture(self):
        """tests/unit/data/test_published_models.c holds the fixture against the programs."""
        rows, compared = [], []
        for model in json.loads(read("tests/reference/published.json")):
            compared.append("copy" if model["compared"] else "shape" if "shape_compared" in model else "no")
            verdict = model["verdict"]
            verdict += f": {model['because']}" if "because" in model else ""
            parameters = f"{model['parameters']:,}" if "parameters" in model else ""
            rows.append(f"| [{model['name']}]({model['source']}) | {parameters} | {verdict} | {compared[-1]} |")
        text = section("docs/models.md", "Published models")
        self.assertEqual([line for line in text.splitlines() if "](https:" in line], rows)
        copies, shapes = compared.count("copy"), compared.count("shape")
        self.assertIn(f"{copies} of the {len(rows)} entries were (`copy` in the table). {shapes} more", text)

    def test_each_family_has_a_row(self):
        types = re.findall(r'\.model_type = "(\w+)"', read("libwlb/families.c"))
        self.assertGreaterEqual(len(types), 7)
        self.assertEqual(re.findall(r"^\| `(\w+)` ", section("docs/models.md", "Families"), re.MULTILINE)[1:], types)


class Advice(unittest.TestCase):
    def test_who_is_told_to_calibrate_is_told_how_many_ranks(self):
        """`wlb calibrate` by itself is one rank, and on CPUs a calibration counts only for runs with as many ranks on a node."""
        told = re.compile(r"\b(?:run|[Mm]easure(?: again)?)\b[^.;|(\"\n]*?\bwlb calibrate\b")
        pages = [*PAGES, *(ROOT / "docs/man").iterdir()]
        sources = [path for folder in ("checks", "coordinator", "planner", "worker") for path in (ROOT / folder).rglob("*.c")]
        texts = {path: path.read_text(encoding="utf-8").replace("\\-", "-") for path in pages}
        for path in sources:  # the strings of C, joined where one follows the other
            joined = re.sub(r'"\s*"', "", path.read_text(encoding="utf-8"))
            texts[path] = "\n".join(re.findall(r'"(?:[^"\\\n]|\\.)*"', joined))
        found = {path: told.findall(text) for path, text in texts.items()}
        wrong = [(str(path.relative_to(ROOT)), text) for path, told in found.items() for text in told
                 if not re.search(r"srun --mpi=pmix --ntasks-per-node=\S+ wlb calibrate$", text)]
        self.assertEqual(wrong, [])


def prose(page):
    """The text of a page without what programs and files say."""
    return re.sub(r"^ *```.*?^ *```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


def anchors(page):
    """What a link to a heading of the page ends with."""
    headings = re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


class Pages(unittest.TestCase):
    def test_the_changelog_names_the_version(self):
        version = re.search(r"^project\(wlb VERSION (\S+)", read("CMakeLists.txt"), re.MULTILINE).group(1)
        releases = re.findall(r"^## (\d+\.\d+\.\d+) - \d{4}-\d\d-\d\d$", read("CHANGELOG.md"), re.MULTILINE)
        self.assertEqual(releases[:1], [version])

    def test_the_readme_is_short(self):
        self.assertLessEqual(len(read("README.md").encode()), 8192)
        self.assertEqual([line for line in read("README.md").splitlines() if len(line) > 140], [])

    def test_lines_are_short(self):
        """Rows of tables can be longer: they cannot be divided."""
        lines = [(page.name, line) for page in [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]
                 for line in page.read_text(encoding="utf-8").splitlines()]
        self.assertEqual([(page, line) for page, line in lines if len(line) > 140 and not line.startswith("|")], [])

    def test_pages_begin_with_a_table_of_contents(self):
        for page in [*(ROOT / "docs").glob("*.md"), ROOT / "CONTRIBUTING.md"]:
            head, *sections = re.split(r"^## (.*)\n", prose(page), flags=re.MULTILINE)
            unlisted = [title for title in sections[::2] if re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") not in
                        re.findall(r"\]\(#([^)]+)\)", head)]
            self.assertEqual(unlisted, [], page.name)

    def test_links_lead_to_files_and_headings(self):
        dead, links = [], 0
        for page in [*PAGES, ROOT / "CONTRIBUTING.md", *(ROOT / "docs/results").glob("*.md")]:
            for path, heading in re.findall(r"\]\((?!https?:)([^)#\s]*)#?([^)\s]*)\)", prose(page)):
                target = page.parent / path if path else page
                links += 1
                if not target.exists() or heading and heading not in anchors(target):
                    dead.append(f"{page.relative_to(ROOT)}: {path}#{heading}")
        self.assertEqual(dead, [])
        self.assertGreater(links, 150)


@unittest.skipUnless(BUILD, "WLB_BUILD_DIR names no build")
class Installation(unittest.TestCase):
    def test_links_of_installed_pages_lead_to_installed_files(self):
        with tempfile.TemporaryDirectory() as root:
            subprocess.run(["cmake", "--install", BUILD], env={**os.environ, "DESTDIR": root}, check=True, stdout=subprocess.DEVNULL)
            pages = list(pathlib.Path(root).rglob("*.md"))
            links = [(page, link) for page in pages
                     for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text(encoding="utf-8")) if "://" not in link]
            dead = [(page.name, link) for page, link in links if not (page.parent / link).exists()]
        self.assertEqual(dead, [])
        self.assertGreater(len(pages), 20)
        self.assertGreater(len(links), 50)
        self.assertIn("README.md", {page.name for page in pages})


if __name__ == "__main__":
    unittest.main()
