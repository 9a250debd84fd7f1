#!/usr/bin/env python3
"""Whether the files of dashboards/provisioning are what dashboards/source makes, and of Grafana's schema, as its SDK has it.

The SDK is in an environment that scripts/lib/python-venv makes where this machine has none; exits with 77 where that cannot be made."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
SOURCE = ROOT / "dashboards/source"
BOARDS = sorted((ROOT / "dashboards/provisioning/dashboards/wlb").glob("*.json"))
RULES = ROOT / "dashboards/prometheus/wlb.rules.yml"
ROOM_BYTES = 64 << 20


def find_python():
    """The interpreter of the environment."""
    made = subprocess.run([ROOT / "scripts/lib/python-venv", "dashboards", SOURCE / "requirements.txt", str(ROOM_BYTES)], stdout=subprocess.PIPE,
                          text=True, check=False)
    if made.returncode != 0:
        sys.exit(made.returncode)
    return pathlib.Path(made.stdout.strip()) / "bin/python"


class Made(unittest.TestCase):
    def test_the_files_are_those_that_the_rows_make(self):
        done = subprocess.run([sys.executable, SOURCE / "make.py", "--check"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_the_sdk_reads_what_it_wrote(self):
        """It drops what Grafana's schema does not have; of annotations it knows the query of no data source."""
        from grafana_foundation_sdk.cog.encoder import JSONEncoder
        from grafana_foundation_sdk.models.dashboard import Dashboard
        self.assertEqual(len(BOARDS), 6)
        for path in BOARDS:
            with self.subTest(dashboard=path.name):
                written = json.loads(path.read_text(encoding="utf-8"))
                for mark in written.get("annotations", {}).get("list", []):
                    del mark["target"]
                read = json.loads(json.dumps(Dashboard.from_json(written), cls=JSONEncoder))
                self.assertEqual(read, written)

    def test_panels_do_not_overlap(self):
        for path in BOARDS:
            taken = set()
            for panel in json.loads(path.read_text(encoding="utf-8"))["panels"]:
                at = panel["gridPos"]
                cells = {(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])}
                self.assertFalse(cells & taken, f"{path.name}: {panel['title']}")
                self.assertLessEqual(at["x"] + at["w"], 24, f"{path.name}: {panel['title']}")
                taken |= cells

    @unittest.skipUnless(shutil.which("promtool"), "there is no promtool (apt-get install prometheus)")
    def test_prometheus_reads_rules_and_queries(self):
        board = json.loads((ROOT / "dashboards/provisioning/dashboards/wlb/service.json").read_text(encoding="utf-8"))
        queries = [target["expr"].replace("$__rate_interval", "1m").replace("$__range", "1h") for panel in board["panels"]
                   for target in panel["targets"]]
        rules = {"groups": [{"name": "g", "rules": [{"record": f"r{at}", "expr": query} for at, query in enumerate(queries)]}]}
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "queries.json"
            path.write_text(json.dumps(rules), encoding="utf-8")
            for file in path, RULES:
                done = subprocess.run(["promtool", "check", "rules", file], capture_output=True, text=True, check=False)
                self.assertEqual(done.returncode, 0, done.stderr)

    @unittest.skipUnless(shutil.which("promtool"), "there is no promtool (apt-get install prometheus)")
    def test_rules_of_prometheus_fire(self):
        done = subprocess.run(["promtool", "test", "rules", pathlib.Path(__file__).with_name("rules.test.yml")], capture_output=True, text=True,
                              check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    try:
        import grafana_foundation_sdk  # noqa: F401
    except ImportError:
        python = find_python()
        os.execv(python, [str(python), *sys.argv])
    unittest.main()
