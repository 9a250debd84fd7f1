#!/usr/bin/env python3
"""Extreme values in records of one user's own run neither hide nor stop the runs of other users."""
import json
import os
import uuid

import hostile
from harness import clock_s
from hostile import BOTH, MIB, Caller, HostileTest, delivery, event, step

EXTREMES = ["9000000000000000000", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "-1", "0", "-0",
            "1e308", "-1e308", "1e-300", "5e-324", "1e400", "-1e400", "1e-400", "1.5", "NaN", "Infinity", "null", "true",
            '"1"', "[]", "{}", "18446744073709551616", "1" + "0" * 400]
FIELDS = ("step", "loss", "grad_norm", "lr", "tokens", "documents", "step_time_s", "tokens_per_s", "held_tokens",
          "predicted_imbalance", "imbalance", "parts", "loss_tokens", "global_batch_size")
VALUES = {"loss": 1, "tokens": 10**12, "step_time_s": 1e7, "lr": 1, "of_a_user": 1}
FOLLOWED = {"step": 1, "is_step": True, "is_of_attempt": False, "source": "log", "stream": 0, "generation": 0, "at": 0, "span": 10**12,
            "interval_s": 1e7, "values": VALUES}


def extreme_records():
    """(record, value): each record has one field "@" that the value is to take, as text since JSON of Python has no 1e400."""
    for number, field in enumerate(FIELDS):
        for value in EXTREMES:
            yield step(1, number, **{field: "@"}), value
    others = [event(1, at_s="@"), event("@")] + [{"seq": 1, "time": 1e9, "type": kind, "data": data} for kind, data in (
        ("evaluation", {"step": "@"}), ("evaluation", {"step": 1, "loss": "@"}), ("evaluation", {"step": 1, "tokens": "@"}),
        ("checkpoint", {"step": "@", "path": "p"}), ("checkpoint", {"step": 1, "path": "p", "bytes": "@"}),
        ("checkpoint", {"step": 1, "path": "p", "duration_s": "@"}), ("fault", {"kind": "hang", "rank": 0, "step": "@"}),
        ("fault", {"kind": "hang", "rank": "@"}), ("attempt", {"world_size": "@", "rank_map": []}),
        ("attempt", {"world_size": 1, "rank_map": [], "seq_length": "@", "train_iters": "@",
                     "layout": {"tp": "@", "cp": "@", "pp": 1, "dp": 1}}),
        ("attempt_end", {"state": "failed", "exit_code": "@"}), *(("followed", FOLLOWED | {field: "@"}) for field in FOLLOWED),
        *(("followed", FOLLOWED | {"values": VALUES | {name: "@"}}) for name in VALUES))]
    for record in others:
        for value in EXTREMES:
            yield record, value


def deliver_extremes(place, run, attempt):
    """Statuses that are not an answer to such a record: neither stored nor refused as wrong."""
    caller, strange, seq = Caller(place), [], 1
    for record, value in extreme_records():
        record = record | {"seq": seq} if record["seq"] != "@" else record
        body = delivery(run, attempt, [record]) | {"first_seq": seq}
        status, text = caller.post(f"/v1/runs/{run}/records", json.dumps(body).replace('"@"', value).encode())
        if status not in (200, 400, 409):
            strange.append((status, text[:150], record, value))
        seq = caller_seq(caller, run, attempt, seq) if status == 200 else seq
    for tokens, seconds in ((9e18, 1e-300), (9.2e18, 0), (1e18, 1e-320), (1e12, 1e-9)):
        for _ in range(20):
            body = delivery(run, attempt, [step(seq, 10**6 + seq, tokens=int(tokens), step_time_s=seconds)])
            seq += caller.post(f"/v1/runs/{run}/records", body)[0] == 200
    return strange


def caller_seq(caller, run, attempt, seq):
    """The number that is wanted next: an extreme one may have been stored."""
    status, text = caller.post(f"/v1/runs/{run}/records", delivery(run, attempt, [event(2**53)]))
    return json.loads(text)["acked_seq"] + 1 if status == 409 else seq + 1


class Extremes(HostileTest):
    def test_numbers(self):
        run, attempt = self.own_run()
        self.assertEqual(self.attack(deliver_extremes, run, attempt), [[]])
        for (view,) in self.cluster.sql("select viewname from pg_views where schemaname = 'wlb_code'"):
            self.cluster.sql(f"select * from {view}")
        for words in (("runs",), ("runs", "--json"), ("show", run), ("show", run, "--json")):
            self.cluster.run("wlb", *words)

    def test_texts(self):
        run, attempt = self.own_run()
        self.assertEqual(self.attack(deliver_texts, run, attempt), [[]])
        self.cluster.run("wlb", "show", run)
        self.cluster.run("wlb", "show", run, "--json")

    def test_json(self):
        run, attempt = self.own_run()
        self.assertEqual(self.attack(deliver_json, run, attempt), [[]])


def deliver_texts(place, run, attempt):
    caller, strange, seq = Caller(place), [], 0
    texts = ["", "\\u0000", "\\ud800", "\\udfff\\ud800", "\\u202e" * 200, "x" * 4096, "x" * 5000, "x" * MIB, "\\u001b[2J",
             "'; drop table runs; --", "\\uffff\\ufffe", "\U0001f4a5" * 1000]
    for text in texts:
        for kind, detail in ((text, "d"), ("note", text)):
            seq += 1
            record = json.dumps(event(seq)).replace('"note"', f'"{kind}"', 1).replace('"detail": ""', f'"detail": "{detail}"')
            body = json.dumps(delivery(run, attempt, [event(seq)])).replace(json.dumps(event(seq)), record)
            status, answer = caller.post(f"/v1/runs/{run}/records", body.encode())
            if status == 400:
                seq -= 1
            elif status != 200:
                strange.append((status, answer[:200], text[:40]))
    for raw in (b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf8\x88\x80\x80\x80", b"\0", b"\x1f"):
        body = json.dumps(delivery(run, attempt, [event(seq + 1, "@")])).encode().replace(b"@", raw)
        status, answer = caller.post(f"/v1/runs/{run}/records", body)
        if status != 400:
            strange.append((status, answer[:200], repr(raw)))
    return strange


def deliver_json(place, run, attempt):
    """Bodies that are deep, wide, repeated, cut: each is refused as wrong."""
    caller, strange = Caller(place), []
    bodies = {"deep list": b"[" * 200000, "deep object": b'{"a":' * 100000, "deep pair": b"[" * 50000 + b"]" * 50000,
              "many keys": b"{" + b",".join(b'"k%d":1' % n for n in range(60000)) + b"}",
              "same keys": b'{"job_id":1,"job_id":2}', "cut": b'{"job_id":', "two": b"{}{}", "comment": b"/* */{}",
              "long number": b'{"job_id":' + b"1" * 300000 + b"}", "only blanks": b" " * 100000,
              "byte order": b"\xef\xbb\xbf{}", "utf-16": '{"job_id":1}'.encode("utf-16")}
    for name, body in bodies.items():
        for path in ("/v1/runs", f"/v1/runs/{run}/records", f"/v1/runs/{run}/report", f"/v1/runs/{run}/attempts",
                     f"/v1/runs/{run}/end"):
            status, text = caller.post(path, body)
            if status not in (0, 400, 413):  # 0: cut off before it was read whole
                strange.append((name, path, status, text[:100]))
    return strange


def deliver_plans(place, run, attempt, count):
    """Requests full of plans whose node lists are huge, endless or no names: texts that nobody expands, or refused as too long."""
    caller, strange, unknown = Caller(place), [], str(uuid.uuid4())
    lists = ("n[1-1000000000]", "n[1-60000][1-60000]", "n[1-8192]", ",".join(f"n{n}" for n in range(700)), "n[" * 2000,
             "n1," * 1300, "n[0-999999999999999999]", "\u00e9[1-2]", "n[1", "-", "n" * 4096)
    for number in range(count):
        nodes = lists[number % len(lists)]
        records = [{"seq": seq, "time": 1e9, "type": "plan", "data": {
            "layout": {"tp": 1, "cp": 1, "pp": 1, "dp": 1}, "idle": nodes,
            "placement": [{"switch": "s", "nodes": nodes, "first_rank": 0, "ranks": 1}]}} for seq in range(1, 101)]
        status, text = caller.post(f"/v1/runs/{run}/records", delivery(run, unknown if number % 2 else attempt, records))
        if status not in (200, 400, 413, 429):
            strange.append((status, text[:150], nodes[:40]))
    return strange


# ---- amounts -----------------------------------------------------------------------------------------------------------

def flood_of_events(place, run, attempt, count, same):
    """Statuses other than 200 and 429 of batches of 1,000 events."""
    caller, strange = Caller(place), []
    for first in range(1, count, 1000):
        records = [event(seq, "same" if same else f"text {seq}", at_s=1790000000.0 if same else 1790000000.0 + seq / 8)
                   for seq in range(first, first + 1000)]
        status, text = caller.post(f"/v1/runs/{run}/records", delivery(run, attempt, records))
        if status not in (200, 429):
            strange.append((first, status, text[:200]))
    return strange


def flood_of_attempts(place, run, count):
    caller, found = Caller(place), set()
    for number in range(count):
        attempt = str(uuid.uuid4())
        if number % 10:
            found.add(caller.post(f"/v1/runs/{run}/records", delivery(run, attempt, [event(1)]))[0])
        else:
            found.add(caller.post(f"/v1/runs/{run}/attempts", {"attempt_id": attempt, "job_id": int(run),
                                                               "nodes": ["n1"], "previous": None})[0])
    return found


def flood_of_announces(place, first, count):
    caller, found = Caller(place), set()
    for job in range(first, first + count):
        found.add(caller.post("/v1/runs", {"run_id": str(job), "job_id": job, "job_name": "x" * 200})[0])
    return found


def huge_values(place, run, attempt, count):
    """Policies, parts, models, evidence of megabytes."""
    caller, text = Caller(place), "z" * (7 * MIB)
    many = {f"key {n}": n for n in range(200000)}
    for number in range(count):
        for value in ({"layout": "auto", "extra": text + str(number)}, {"layout": "auto"} | many):
            caller.post("/v1/runs", {"run_id": run, "job_id": int(run), "policy": value})
            caller.post(f"/v1/runs/{run}/records", delivery(run, attempt, [step(number + 1, number, parts=value)]))
            caller.post(f"/v1/runs/{run}/records", delivery(run, str(uuid.uuid4()), [
                {"seq": 1, "time": 1e9, "type": "fault", "data": {"kind": "hang", "rank": 0, "evidence": value}},
                {"seq": 2, "time": 1e9, "type": "attempt", "data": {"world_size": 1, "rank_map": [], "model": value}}]))


class Plans(HostileTest):
    def test_node_lists(self):
        run, attempt = self.own_run()
        self.assertEqual(self.attack(deliver_plans, run, attempt, 110, processes=2), [[], []])
        self.assertLess(len(json.dumps(self.shown(run)["attempts"][0]["plan"])), 20000)


class Amounts(HostileTest):
    def stored_mib(self):
        return int(self.cluster.sql("select pg_database_size(current_database())")[0][0]) / MIB

    def test_events(self):
        run, attempt = self.own_run()
        self.assertEqual(self.attack(flood_of_events, run, attempt, 24000, False), [[]])
        stored = int(self.cluster.sql("select count(*) from events e join runs r on r.id = e.run_id "
                                      f"where r.name = '{run}'")[0][0])
        self.assertLess(stored, 12000)
        self.assertGreaterEqual(stored + self.shown(run)["dropped"]["events"], 24000)
        self.assertIn("events", self.cluster.run("wlb", "show", run).stdout)

    def test_same_events(self):
        run, attempt = self.own_run()
        self.assertEqual(self.attack(flood_of_events, run, attempt, 15000, True), [[]])

    def test_attempts(self):
        run, _ = self.own_run()
        self.assertFalse(self.attack(flood_of_attempts, run, 600, processes=3)[0] & {0, 500})
        self.cluster.run("wlb", "show", run)

    def test_announces(self):
        self.attack(flood_of_announces, 1000000, 500, uid=BOTH, processes=4)
        self.assertIn(str(self.victim), self.cluster.run("wlb", "runs", "--user", "root").stdout)

    def test_huge_values(self):
        run, attempt = self.own_run()
        before = self.stored_mib()
        self.attack(huge_values, run, attempt, 3, within_s=100)
        status, text = self.shared_cluster.root.get(f"/v1/runs/{run}")
        self.assertEqual(status, 200)
        self.assertLess(len(text), 2 * MIB)
        self.assertLess(self.stored_mib() - before, 32)


# ---- a spool that others may write to ------------------------------------------------------------------------------------

class Spool(HostileTest):
    """Root's job in a folder where somebody else has laid records into .wlb."""

    def test_planted_files(self):
        folder = self.cluster.home / "shared"
        folder.mkdir()
        folder.chmod(0o777)
        attempt = str(uuid.uuid4())
        self.attack(plant, folder, str(self.victim), attempt)
        self.attack(plant_journals, folder, self.victim)
        script = folder / "job.sh"
        script.write_text("#!/bin/bash\nwlb run -- true\n")
        job = int(self.cluster.run("sbatch", "--parsable", "--wlb-layout=auto", "-o", "%j.out", script, cwd=folder).stdout)
        began = clock_s()
        self.cluster.wait_job(job, 60)
        self.assertLess(clock_s() - began, 6)
        self.assertEqual(os.lstat(folder / ".wlb/precious").st_size, 4, "root's process wrote through a link")


def plant_journals(place, folder, job):
    """Links where root's next jobs count how often they were started."""
    for number in range(1, 20):
        (folder / f".wlb/{job + number}.json").symlink_to(folder / ".wlb/precious")


def plant(place, folder, run, attempt):
    """Records that are refused for good, a pipe, a link to an endless file, a line without end."""
    spool = folder / ".wlb"
    spool.mkdir()
    spool.chmod(0o777)
    os.umask(0)
    header = {"wlb_spool": 1, "run_id": run, "attempt_id": attempt, "source": "rank0"}
    lines = [json.dumps(header), json.dumps({"seq": 1, "time": 1e9, "type": "step", "data": {"step": "x"}})]
    (spool / f"{attempt}.rank0.jsonl").write_text("\n".join(lines) + "\n")
    for number in range(5):
        other = str(uuid.uuid4())
        header |= {"attempt_id": other, "run_id": f"{number + 77777}"}
        (spool / f"{other}.rank0.jsonl").write_text(json.dumps(header) + '\n{"seq": 1, "time": 1e400}\n{"se')
    os.mkfifo(spool / f"{uuid.uuid4()}.rank0.jsonl")
    (spool / f"{uuid.uuid4()}.run.jsonl").symlink_to("/dev/zero")
    (spool / "precious").write_text("mine")
    (spool / f"{uuid.uuid4()}.run.jsonl").symlink_to(spool / "precious")
    with open(spool / f"{uuid.uuid4()}.run.jsonl", "wb") as file:
        file.write(json.dumps(header).encode() + b"\n")
        file.truncate(200 * MIB)


if __name__ == "__main__":
    hostile.main()
