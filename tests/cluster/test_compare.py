#!/usr/bin/env python3
"""wlb tag, wlb note, wlb compare and wlb query, beside a live wlbd: runs are rows, which no job stands behind."""
import itertools

import harness
import test_wlbd_api
from test_wlbd_api import NOBODY


class RunsTest(test_wlbd_api.ApiTest):
    nodes = 1
    jobs = itertools.count(7000)

    def ended_run(self, uid=0, **columns):
        """The name of a run that has ended; a value is SQL."""
        job = next(self.jobs)
        columns = {"name": f"'{job}'", "job_id": job, "job_name": "'train'", "uid": uid, "user_name": f"'u{uid}'",
                   "state": "'complete'", "confirmed": "true", "ended_at": "now()", "started_at": "now() - interval '1 h'"} | columns
        self.cluster.sql(f"insert into runs ({', '.join(columns)}) values ({', '.join(map(str, columns.values()))})")
        return str(job)

    def wlb(self, *words, code=0, **options):
        """Standard output of a command; its message where it is to fail."""
        result = self.cluster.run("wlb", *words, check=False, **options)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        return result.stderr if code else result.stdout


class Tags(RunsTest):
    def tag(self, run, uid=0, **body):
        return self.api.call("POST", f"/v1/runs/{run}/tags", body, uid)

    def note(self, run, uid=0, **body):
        return self.api.call("POST", f"/v1/runs/{run}/notes", body, uid)

    def test_tags(self):
        run, other = self.ended_run(), self.ended_run()
        self.assertEqual(self.wlb("tag", run, "lr/2e-4", "baseline", "baseline"), f"run {run} has the tags\n  baseline\n  lr/2e-4\n")
        self.wlb("tag", other, "lr/2e-4")
        listed = self.api.call("GET", "/v1/runs?tag=baseline")[1]["runs"]
        self.assertEqual([(entry["run_id"], entry["tags"]) for entry in listed], [(run, ["baseline", "lr/2e-4"])])
        self.assertIn(run, self.wlb("runs", "--tag", "baseline"))
        self.assertNotIn(other, self.wlb("runs", "--tag", "baseline"))
        self.assertIn("\n  tags: baseline lr/2e-4\n", self.wlb("show", run))
        self.assertEqual(self.wlb("tag", run, "baseline", "absent", "--remove"), f"run {run} has the tag\n  lr/2e-4\n")
        self.assertEqual(self.cluster.sql(f"select tag, set_by from run_tags where run = '{run}'"), [["lr/2e-4", "u0"]])

    def test_tags_have_bounds(self):
        run = self.ended_run()
        for tag in ("", "-x", "a b", "x" * 65, "\u202ex", "a;b", "\x1b[2J", "ä", "a\n"):
            status, reply = self.tag(run, add=["good", tag])
            self.assertEqual(status, 400, reply)
        self.assertEqual(self.tag(run, add="x")[0], 400)
        self.assertEqual(self.tag("999999", add=["x"])[0], 404)
        names = [f"t{number:02}" for number in range(32)]
        self.assertEqual(self.tag(run, add=names), (200, {"run_id": run, "tags": names}))
        status, reply = self.tag(run, add=["one-more"])
        self.assertEqual((status, "--remove TAG" in reply["error"]), (409, True), reply)
        self.assertEqual(self.tag(run, add=["one-more"], remove=["t31"])[1]["tags"], ["one-more", *names[:31]])
        self.assertIn("no tag is given", self.wlb("tag", run, code=2))

    def test_another_users_run_is_not_described(self):
        run, own = self.ended_run(), self.ended_run(NOBODY)
        for asked in (self.tag(run, NOBODY, add=["x"]), self.note(run, NOBODY, add="x")):
            self.assertEqual((asked[0], "belongs to another user" in asked[1]["error"]), (403, True), asked)
        self.assertEqual(self.tag(own, NOBODY, add=["x"])[0], 200)
        self.assertEqual(self.note(own, NOBODY, add="mine")[0], 200)
        self.assertEqual(self.note(own, 0, add="not mine")[1]["notes"][1]["by"], "root")

    def test_notes(self):
        run = self.ended_run()
        self.wlb("note", run, "half the learning rate: \x1b[2J\u202e of 7000")
        self.assertEqual(self.wlb("note", run, "second"), f"run {run}: note 2 is written\n")
        shown = self.wlb("show", run)
        self.assertRegex(shown, r"\n  note 1 of u0, \S+ \S+:\n    half the learning rate:  \[2J  of 7000\n  note 2 of u0")
        self.assertNotIn("\u202e", shown + self.wlb("show", run, "--json"))
        self.wlb("note", run, "--remove", "1")
        self.assertEqual([note["note"] for note in self.cluster.show(run)["notes"]], ["second"])
        self.assertIn("has no note 7", self.wlb("note", run, "--remove", "7", code=1))
        self.assertIn("either a text or --remove", self.wlb("note", run, code=2))
        self.assertIn("put quotes around it", self.wlb("note", run, "two", "words", code=2))

    def test_notes_have_bounds(self):
        run = self.ended_run()
        for body in ({"add": "x" * 4097}, {"add": ""}, {}, {"remove": 0}, {"remove": "1"}, {"add": 1}):
            self.assertEqual(self.note(run, **body)[0], 400, body)
        self.assertEqual(self.note(run, add="ä" * 2048)[0], 200)
        self.cluster.sql(f"insert into notes select id, n, 'x', 'root' from runs, generate_series(2, 100) as n where name = '{run}'")
        status, reply = self.note(run, add="one more")
        self.assertEqual((status, "--remove N" in reply["error"]), (409, True), reply)


if __name__ == "__main__":
    harness.main()
