#!/usr/bin/env python3
"""`wlb top`, as text and on a terminal, on what nodes report of their ranks."""
import json
import os
import re
import signal
import termios
import time
import uuid

import harness
import test_ranks
from harness import clock_s, wait_for
from terminal import CODES, Terminal
from test_ranks import activity, waits

PAGE = """Run RUN: running, attempt 1, tp=2,cp=1,pp=1,dp=2, on n[1-2]
step 3 of 90, loss 2.5000, 2048 tokens/s, TIME left
4 of 4 ranks reported, 0.N to TIME ago
S starting  L loading  C computing  V saving  E evaluating  D ending  R running
small letter: waits in a call   T stopped  G process gone  ? not reported
+ for 10 s or 1 step behind  * 30 s or 2 steps  ! 120 s or 4 steps, or T, G
n1 C c*  n2 S C!
Ranks that need attention
C! rank 3 on n2: computing for TIME, step 39 (2 behind)
c* rank 1 on n1: in all_reduce of dp for TIME; computing for TIME, step 41
Collectives in progress
dp all_reduce 51, 64.0 KiB, for TIME: 1 of 2 ranks have entered: 1
   not entered: 3; 3 on n2: computing for TIME
"""


def without_times(text):
    """Times that grow while the test runs, replaced by a word."""
    return re.sub(r"\d+\.\d s|\d+:\d\d\b", "TIME", text)


def step(seq, number):
    return {"seq": seq, "time": 1790000000.0 + seq, "type": "step", "data": {
        "step": number, "loss": 2.5, "grad_norm": 0.5, "lr": 0.001, "tokens": 4096, "documents": 9, "step_time_s": 2.0,
        "tokens_per_s": 2048}}


class BusyTest(test_ranks.RanksTest):
    """With a run of which three steps are recorded; rank 3 computes while rank 1 waits for it."""

    def new_busy(self):
        run, attempt = self.new_attempt()
        self.deliver(run, attempt, [step(2, 1), step(3, 2), step(4, 3)])
        self.report_busy(run, attempt)
        return run, attempt

    def top(self, run, *options, **more):
        return self.cluster.run("wlb", "top", run, *options, **more)

    def report_busy(self, run, attempt):
        """What `wlb top` marks depends on the age of reports, from 5 s on."""
        self.report(run, attempt, "n1", [activity(0), waits(1, 35)])
        self.report(run, attempt, "n2", [activity(2, activity="starting", groups=[]), activity(3, step=39, for_s=200)])


class Once(BusyTest):
    def test_page(self):
        run, attempt = self.new_busy()
        text = without_times(self.top(run).stdout)
        text = re.sub(r"\d\.\d to", "0.N to", text)
        self.assertEqual(text, PAGE.replace("RUN", run))
        for by, line in (("tp", "dp0 C c*  dp1 S C!\n"), ("dp", "tp0 C S   tp1 c*C!\n"), ("cp", "tp0 dp0 C   tp1 dp0 c*"),
                         ("pp", "tp0 dp0 C   tp1 dp0 c*"), ("node", "n1 C c*  n2 S C!\n")):
            self.report_busy(run, attempt)
            self.assertIn("\n" + line, self.top(run, "--once", "--by", by).stdout)

    def test_names_cannot_command_the_terminal(self):
        run, attempt = self.new_busy()
        self.api.call("POST", f"/v1/runs/{run}/end", {"state": "failed", "attempt_id": attempt,
                                                     "reason": "\x1b[2Jcleared\r\n\x9b31m"})
        text = self.top(run).stdout
        self.assertNotRegex(text, r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")
        self.assertIn("cleared", text)
        self.assertIn(f"The run has ended: failed. 'wlb show {run}' shows why.\n", text)

    def test_before_the_first_attempt(self):
        text = self.top(self.new_run()).stdout
        self.assertIn("starting, attempt -, -, on -\nstep - of -, loss -, - tokens/s, - left\n"
                      "no report has said what its ranks do\n", text)

    def test_errors(self):
        run, _ = self.new_busy()
        for words, code, message in (
            (["999999"], 1, "999999"),
            (["../runs"], 2, "must be a run's name"),
            ([run, "--by", "rank"], 2, "--by"),
            ([], 2, "RUN"),
        ):
            done = self.cluster.run("wlb", "top", *words, check=False)
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertIn(message, done.stderr)
            self.assertEqual(done.stdout, "")
        self.cluster.verb("kill-wlbd")
        try:
            done = self.top(run, check=False)
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertIn("wlb top: coordinator 127.0.0.1", done.stderr)
        finally:
            self.cluster.verb("start-wlbd")


class Live(BusyTest):
    def start(self, run, *options, **more):
        terminal = Terminal(self.cluster, run, *options, **more)
        self.addCleanup(os.close, terminal.fd)
        self.assertNotEqual(terminal.wait_text(r"\x1b\[\?1049h"), 0)
        terminal.wait_text("q: quit")
        return terminal

    def assert_restored(self, terminal):
        self.assertEqual(termios.tcgetattr(terminal.fd)[:4], terminal.modes[:4])
        self.assertEqual(terminal.text.count("\x1b[?1049h"), terminal.text.count("\x1b[?1049l"))
        self.assertEqual(terminal.text.count("\x1b[?25l"), terminal.text.count("\x1b[?25h"))
        self.assertGreater(terminal.text.rindex("\x1b[?25h"), terminal.text.rindex("\x1b[?25l"))

    def assert_modes(self, terminal, is_live):
        local_modes = termios.tcgetattr(terminal.fd)[3]
        self.assertEqual(not local_modes & (termios.ICANON | termios.ECHO), is_live)

    def test_drawn_again_until_q(self):
        run, attempt = self.new_busy()
        terminal = self.start(run)
        self.assert_modes(terminal, True)
        self.assertIn("n1 C c*  n2 S C!", terminal.pages()[-1])
        self.report(run, attempt, "n2", [activity(2, activity="saving"), activity(3, step=41)])
        terminal.wait_text("n1 .{0,30}n2 .{0,8}V .{0,8}C ", after=len(terminal.text))
        terminal.send("x")  # does nothing
        terminal.wait_text("q: quit", after=len(terminal.text))
        terminal.send("q")
        self.assertEqual(terminal.end(), 0)
        self.assert_restored(terminal)
        for page in terminal.pages():
            self.assertLessEqual(len(page), 24)
            self.assertLessEqual(max(map(len, page)), 80)

    def test_ctrl_c_and_signals(self):
        run, _ = self.new_busy()
        for act, status in ((lambda t: t.send("\x03"), 0), (lambda t: os.kill(t.pid, signal.SIGINT), 0),
                            (lambda t: os.kill(t.pid, signal.SIGTERM), signal.SIGTERM),
                            (lambda t: os.kill(t.pid, signal.SIGHUP), signal.SIGHUP),
                            (lambda t: t.send("\x1c"), signal.SIGQUIT)):
            terminal = self.start(run)
            act(terminal)
            self.assertEqual(terminal.end() & 0x7f, status)
            self.assert_restored(terminal)

    def test_ctrl_z_gives_the_terminal_back(self):
        run, _ = self.new_busy()
        terminal = self.start(run)
        os.kill(terminal.pid, signal.SIGTSTP)
        self.assertTrue(os.WIFSTOPPED(os.waitpid(terminal.pid, os.WUNTRACED)[1]))
        terminal.wait_text(r"\x1b\[\?1049l")
        self.assert_restored(terminal)
        os.kill(terminal.pid, signal.SIGCONT)
        terminal.wait_text("q: quit", after=len(terminal.text))
        self.assert_modes(terminal, True)
        terminal.send("q")
        self.assertEqual(terminal.end(), 0)
        self.assert_restored(terminal)

    def test_another_size(self):
        run, _ = self.new_busy()
        terminal = self.start(run)
        for columns, rows in ((40, 12), (132, 50), (20, 4)):
            before = len(terminal.pages())
            terminal.resize(columns, rows)
            # The page after the next began after the change.
            wait_for("pages of the new size", lambda before=before: terminal.read(0.05) and len(terminal.pages()) > before + 2,
                     10, 0)
            page = terminal.pages()[before + 1]
            self.assertLessEqual(max(map(len, page)), columns)
            self.assertLessEqual(len(page), rows)
            self.assertGreater(max(map(len, page)), columns - 8 if columns < 80 else 70)
        terminal.send("q")
        self.assertEqual(terminal.end(), 0)
        self.assert_restored(terminal)

    def test_the_run_ends(self):
        run, attempt = self.new_busy()
        terminal = self.start(run)
        self.api.call("POST", f"/v1/runs/{run}/end", {"state": "complete", "attempt_id": attempt})
        self.assertEqual(terminal.end(), 0)
        self.assert_restored(terminal)
        last = CODES.sub("", terminal.text.rpartition("\x1b[?1049l")[2])
        self.assertIn(f"Run {run}: complete", last)
        self.assertIn("n1 C c*  n2 S C!", last)
        self.assertIn("The run has ended: complete.", last)

    def test_the_coordinator_goes_away(self):
        run, attempt = self.new_busy()
        terminal = self.start(run)
        self.cluster.verb("kill-wlbd")
        try:
            terminal.wait_text(r"\d s old: coordinator 127.0.0.1", after=len(terminal.text))
            self.assertTrue(any("n1 C c*  n2 S C!" in line for line in terminal.pages()[-2]))
        finally:
            self.cluster.verb("start-wlbd")
        terminal.wait_text(r"no report has said what its ranks do", after=len(terminal.text))
        self.report(run, attempt, "n1", [activity(0), activity(1)])
        terminal.wait_text("2 of 4 ranks reported", after=len(terminal.text))
        terminal.send("q")
        self.assertEqual(terminal.end(), 0)
        self.assert_restored(terminal)

    def test_q_while_the_coordinator_does_not_answer(self):
        run, _ = self.new_busy()
        terminal = self.start(run)
        pid = int((self.cluster.dir / "run/wlbd.pid").read_text(encoding="utf-8").split()[0])
        os.kill(pid, signal.SIGSTOP)
        try:
            time.sleep(2.5)  # a request waits
            began = clock_s()
            terminal.send("q")
            self.assertEqual(terminal.end(), 0)
            self.assertLess(clock_s() - began, 2)
        finally:
            os.kill(pid, signal.SIGCONT)
        self.assert_restored(terminal)

    def test_colours(self):
        run, _ = self.new_busy()
        for options, env, is_coloured in (([], {}, True), (["--no-color"], {}, False), ([], {"NO_COLOR": "1"}, False),
                                          ([], {"NO_COLOR": ""}, True)):
            terminal = Terminal(self.cluster, run, "--once", *options, **env)
            self.addCleanup(os.close, terminal.fd)
            self.assertEqual(terminal.end(), 0)
            self.assertEqual("\x1b[1;31mC!\x1b[0m" in terminal.text, is_coloured)
            self.assertEqual("\x1b" in terminal.text, is_coloured)


class Sizes(BusyTest):
    """Runs of many ranks: their rows are made in the database, since this cluster has two nodes."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.restart_wlbd("job_poll_ms = 3600000\n")  # a poll of the jobs would end these runs

    def make_run(self, name, nodes, ranks_on_node):
        """A running attempt of tp 1, 2 or 8 on nodes m1, m2, ...; its id."""
        ranks, attempt = nodes * ranks_on_node, str(uuid.uuid4())
        tp = min(8, ranks_on_node)
        self.cluster.sql(f"""
            insert into runs (name, job_id, uid, user_name, job_name, state, train_iters, submitted_at, started_at)
            values ('{name}', {name}, 0, 'root', 'many', 'running', 90, now(), now());
            insert into attempts (run_id, number, uuid, state, launched, nodes, world_size, tp, cp, pp, dp, started_at)
            select id, 1, '{attempt}', 'running', true, array(select 'm' || k from generate_series(1, {nodes}) k), {ranks},
                {tp}, 1, 1, {ranks // tp}, now() from runs where name = '{name}';
            insert into rank_map (attempt_id, rank, node, local_rank)
            select a.id, r, 'm' || (r / {ranks_on_node} + 1), r % {ranks_on_node} from attempts a,
                generate_series(0, {ranks - 1}) r where a.uuid = '{attempt}'""")
        return attempt

    def report_all(self, run, attempt, nodes, ranks_on_node):
        ranks = nodes * ranks_on_node
        tp = min(8, ranks_on_node)
        groups = [["tp", tp, 123456, 123456], ["dp", ranks // tp, 1234, 1234], ["world", ranks, 99, 99],
                  ["cp", 1, 0, 0], ["pp 0>1", 2, 123456, 123456], ["pp_back 1>0", 2, 123456, 123456]]
        for node in range(nodes):
            first = node * ranks_on_node
            entries = [activity(rank, step=100000 - rank % 5, for_s=rank % 150, groups=groups) for rank in
                       range(first, first + ranks_on_node)]
            for entry in entries[::3]:
                entry["call"] = {"kind": "reduce_scatter", "group": 1, "seq": 1234, "bytes": 123456789, "for_s": 45.6}
                entry["groups"] = [groups[0], ["dp", ranks // tp, 1234, 1233], *groups[2:]]
            body = {"attempt_id": attempt, "source": "node", "node": f"m{node + 1}", "rank": first, "agent": True,
                    "activities": entries, "goodbye": True}
            status, reply = self.api.call("POST", f"/v1/runs/{run}/report", body)
            self.assertEqual(status, 200, reply)

    def test_never_wider_than_the_terminal(self):
        for nodes, ranks_on_node in ((1, 1), (1, 8), (8, 8), (64, 32), (128, 128)):
            ranks, run = nodes * ranks_on_node, str(self.cluster.sbatch("sleep 600", "--begin=now+3600"))
            self.addCleanup(self.cluster.run, "scancel", run)
            with self.subTest(ranks=ranks):
                attempt = self.make_run(run, nodes, ranks_on_node)
                self.report_all(run, attempt, nodes, ranks_on_node)
                reply = self.ranks(run)
                self.assertEqual([len(reply["ranks"]), reply["left_out"]], [ranks, 0])
                for by in ("node", "tp", "dp"):
                    lines = self.top(run, "--by", by).stdout.splitlines()
                    self.assertLessEqual(max(map(len, lines)), 80, lines)
                    self.assertRegex(lines[2], f"^{ranks} of {ranks} ranks reported, ")
                terminal = Terminal(self.cluster, run)
                self.addCleanup(os.close, terminal.fd)
                terminal.wait_text("q: quit")
                terminal.send("q")
                self.assertEqual(terminal.end(), 0)
                page = terminal.pages()[0]
                self.assertLessEqual(max(map(len, page)), 80, page)
                self.assertLessEqual(len(page), 24)
                print(f"{ranks} ranks: GET .../ranks has {len(json.dumps(reply, separators=(',', ':')))} bytes", flush=True)


if __name__ == "__main__":
    harness.main()
