#!/usr/bin/env python3
"""The page of `wlb report`, opened in headless Chromium: of a real run that lost a rank, of a long one with hostile names, of both.

WLB_TEST_PICTURES=DIR keeps pictures of the pages there, as a person sees them."""
import http.client
import json
import os
import pathlib
import pty
import shutil
import signal
import subprocess
import sys
import urllib.parse

import browser
import harness
import training

NOBODY = 65534
STEPS, PEAK, NO_LOSS = 100000, 54321, 60000
PAGE_BYTES_MOST = 2 << 20
MARKUP = "</script><script>window.hit = 1</script><img src=x onerror='window.hit = 2'>"
CONTROLS = "\x85\u202e\u2028"  # a C1 control, a mark of direction, a line of its own in JavaScript
SECTIONS = ["What to do next", "Loss", "Throughput", "Where the time went", "Balance of the packed documents", "Pipeline of a step",
            "Lateness of ranks", "Why this layout", "What happened and what was done", "Settings"]
PLAN = {"layout": {"tp": 1, "cp": 1, "pp": 4, "dp": 2}, "interleave": 2, "micro_batches": 8, "micro_batch_size": 1, "recompute": "none",
        "step_s": 0.61, "memory_bytes": 7e7, "utilization": 0.4, "machine": MARKUP,
        "memory_limit_bytes": 1e8, "reason": "the fastest of 12",
        "next": [{"layout": {"tp": 2, "cp": 1, "pp": 4, "dp": 1}, "interleave": 1, "micro_batches": 8, "step_s": 0.7}], "misfits": []}


def quoted(text):
    """A text, or a value as JSON, in SQL."""
    text = text if isinstance(text, str) else json.dumps(text)
    return "'" + text.replace("'", "''") + "'"


class Report(training.TrainingTest):
    nodes = 1
    wlbd_conf = harness.WLBD_CONF + "private_data = yes\n"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.chromium = cls.enterClassContext(browser.started())
        cls.page_file = cls.cluster.work / "page.html"

    def report(self, *words, **options):
        return self.cluster.run("wlb", "report", *words, "-o", self.page_file, **options)

    def open(self, name, width=1280, scheme="light"):
        """The page, which must load nothing, write nothing to the console, and fit the width."""
        page = self.chromium.open(f"file://{self.page_file}", width, scheme)
        self.assertEqual(page.messages, [])
        self.assertEqual({url for url in page.requests if not url.startswith("data:")}, {f"file://{self.page_file}"})
        self.assertLessEqual(page.evaluate("document.documentElement.scrollWidth"), width)
        if "WLB_TEST_PICTURES" in os.environ:
            page.save_picture(pathlib.Path(os.environ["WLB_TEST_PICTURES"]) / f"{name}-{width}-{scheme}.png")
        return page

    def has_command(self):
        return "wlb-worker train" in self.page_file.read_text(encoding="utf-8")

    def make_run(self):
        """A real one, of which rank 1 was killed once. Returns its name."""
        job = self.submit(nodes=1, layout="tp=1,cp=1,pp=2", iterations=36)
        self.wait_step(job, training.SAVE_INTERVAL + 3)
        os.kill(self.rank_pid(1), signal.SIGKILL)
        self.assertEqual(self.finish(job)["state"], "complete")
        return job

    def make_rows(self, name, steps):
        """Rows of a run, with one peak and one loss that is no number, and texts of a user who means harm. Returns its name."""
        run = self.cluster.sql(f"""insert into runs (name, job_id, uid, user_name, job_name, state, reason, model, policy, train_iters,
                steps, first_step, last_step, first_loss, last_loss, started_at, ended_at)
            values ('{name}', {name}, 0, 'root', {quoted(MARKUP)}, 'failed', {quoted(MARKUP + CONTROLS)},
                {quoted({MARKUP + CONTROLS: MARKUP})}, {quoted({"layout": MARKUP})}, {steps}, {steps}, 1, {steps}, 9, 2,
                now() - interval '1 day', now()) returning id""")[0][0]
        attempt = self.cluster.sql(f"""insert into attempts (run_id, number, uuid, state, reason, nodes, tp, cp, pp, dp, world_size,
                created_at, started_at, ended_at, plan)
            values ({run}, 1, gen_random_uuid(), 'failed', {quoted(MARKUP)}, array[{quoted(MARKUP)}], 1, 1, 4, 2, 8,
                now() - interval '1 day', now() - interval '1 day', now(), {quoted(PLAN)}) returning id""")[0][0]
        self.cluster.sql(f"""insert into steps (run_id, step, attempt_id, loss, tokens, step_time_s, tokens_per_s, predicted_imbalance,
                imbalance, parts, recorded_at)
            select {run}, n, {attempt}, case n when {PEAK} then 77 when {NO_LOSS} then null else 2 + 7 * exp(-n / 2e4) end, 4096, 0.5,
                8192, 1.01, 1.1, case when n % 100 = 0 then '{{"forward_s": 0.1, "backward_s": 0.2, "dp_s": 0.1}}'::jsonb end,
                now() - interval '1 day' + n * interval '0.5 s' from generate_series(1, {steps}) n;
            insert into faults (run_id, attempt_id, kind, is_loss, rank, node, step, cause, detail, detected_at)
            values ({run}, {attempt}, 'rank_lost', true, 3, {quoted(MARKUP)}, 70000, true, {quoted(MARKUP + CONTROLS)}, now());
            insert into events (run_id, attempt_id, kind, detail, recorded_at) values ({run}, {attempt}, {quoted(MARKUP)},
                {quoted(MARKUP)}, now())""")
        return name

    def check_keyboard(self, page):
        """The skip link is first; a chart that has the focus says the values at its cursor, and zooms."""
        page.press("Tab")
        self.assertEqual(page.evaluate("document.activeElement.id"), "skip")
        page.evaluate("document.getElementById('loss').focus()")
        page.press("ArrowRight")
        page.press("ArrowRight")
        first = page.evaluate("document.getElementById('loss').getAttribute('aria-valuetext')")
        self.assertRegex(first, r"^step 3 \S loss 5\.\d")
        line = page.evaluate("document.querySelector('#loss .line').getAttribute('d')")
        page.press("+")
        self.assertNotEqual(page.evaluate("document.querySelector('#loss .line').getAttribute('d')"), line)
        page.press("0")
        self.assertEqual(page.evaluate("document.querySelector('#loss .line').getAttribute('d')"), line)

    def check_update(self, page):
        """New data are drawn without a reload, and what was open, and where the focus was, stays."""
        page.evaluate("document.getElementById('loss-table').open = true; document.getElementById('loss').focus()")
        page.evaluate("""(() => { const data = JSON.parse(document.getElementById("wlb-data").textContent);
            data.runs[0].run.state = "failed";
            data.runs[0].ranks = {ranks_each: 1, nodes: ["n1"], cells: [[0, 0, -500], [1, 0, 2500], [2, null, null]]};
            wlbUpdate(data); })()""")
        self.assertEqual(page.evaluate("[...document.querySelectorAll('#ranks rect title')].map((title) => title.textContent)"),
                         ["rank 0 on n1: 0.5 ms early", "rank 1 on n1: 2.5 ms late", "rank 2: not known"])
        self.assertEqual(page.evaluate("[document.querySelector('h1 .state').textContent, document.getElementById('loss-table').open, "
                                       "document.activeElement.id]"), ["failed", True, "loss"])

    def check_run(self, run):
        # Of 21 samples the newest 20 count; 2 ms and 3 ms late in the mean is 2.5 ms.
        self.cluster.sql("delete from rank_samples; insert into rank_samples select id, started_at + interval '1 s' * n, case n when 0 then '{9, 9}'::real[] "
                         "else array[-0.0005, 0.002 + 0.001 * (n % 2)]::real[] end, '{1, 1}' from attempts, generate_series(0, 20) as n "
                         f"where run_id = (select id from runs where name = '{run}') on conflict do nothing")
        self.report(run)
        self.assertEqual(self.page_file.stat().st_mode & 0o777, 0o600)
        page = self.open("run")
        self.assertEqual(page.evaluate("[...document.querySelectorAll('h2')].map((title) => title.textContent)"), SECTIONS)
        self.assertEqual(page.evaluate("document.title"), f"Run {run} \u2013 WLB")
        marks = page.evaluate("['fault', 'attempt', 'checkpoint'].map((kind) => "
                              "document.querySelectorAll(`#loss .mark-${kind}`).length)")
        self.assertEqual(marks, [1, 1, 3])
        self.assertEqual(page.evaluate("document.querySelectorAll('#loss .line, #speed .line, #imbalance .line').length"), 4)
        self.assertGreater(page.evaluate("document.querySelectorAll('#pipeline rect').length"), 8)
        self.assertGreater(page.evaluate("document.querySelectorAll('#time path.fill').length"), 4)
        self.assertIn("rank lost: rank 1 on n1 (cause)", page.evaluate("document.getElementById('story').textContent"))
        self.assertFalse(self.has_command())
        self.assertEqual(page.evaluate("[...document.querySelectorAll('#ranks rect title')].map((title) => title.textContent)"),
                         ["rank 0 on n1: 0.5 ms early", "rank 1 on n1: 2.5 ms late"])
        self.check_keyboard(page)
        self.check_update(page)
        self.open("run", 390, "dark")
        self.report(run, "--outputs")
        self.assertTrue(self.has_command())

    def check_long_run(self, run):
        self.report(run)
        self.assertLess(self.page_file.stat().st_size, PAGE_BYTES_MOST)
        page = self.open("long", 390)
        self.assertEqual(page.evaluate("window.hit === undefined && document.querySelectorAll('img').length === 0"), True)
        self.assertEqual(page.evaluate("document.scripts.length"), 2)
        curve = page.evaluate("JSON.parse(document.getElementById('wlb-data').textContent).runs[0].curve")
        self.assertLessEqual(len(curve["step"]), 2000)
        self.assertEqual(curve["step"], sorted(set(curve["step"])))
        self.assertEqual([curve["loss"][curve["step"].index(step)] for step in (PEAK, NO_LOSS)], [77, None])
        self.assertEqual(curve["tokens"][-1], 4096 * STEPS)
        self.assertEqual(page.evaluate("document.querySelectorAll('#pipeline rect title').length"), 4 * 2 * 8 * 2)
        text = page.evaluate("document.body.innerText")
        self.assertGreaterEqual(text.count(MARKUP), 6)
        self.assertEqual([mark for mark in CONTROLS if mark in page.evaluate("document.body.textContent")], [])
        self.assertIn("wlb logs 9000", text)

    def check_empty_run(self, run):
        """One that waits for its nodes: nothing is known of it yet."""
        self.report(run)
        page = self.open("empty", 390)
        self.assertEqual(page.evaluate("[...document.querySelectorAll('h2')].length"), len(SECTIONS))
        self.assertIn("has recorded no loss", page.evaluate("document.getElementById('losses').textContent"))
        self.assertIn("MFU is not known", page.evaluate("document.body.textContent"))

    def check_both(self, run, other):
        self.report(run, other)
        page = self.open("both", 1280, "dark")
        self.assertEqual(page.evaluate("[...document.querySelectorAll('#loss .line, #loss-tokens .line')].length"), 4)
        first = page.evaluate("[...document.querySelectorAll('#settings tbody tr')].map((row) => row.className)")
        self.assertEqual(first, sorted(first, reverse=True))
        self.assertIn("differs", first)

    def refused(self, *words, code=1, **options):
        """What the command says; the file that was there stays as it was."""
        self.page_file.write_text("before", encoding="utf-8")
        done = self.report(*words, check=False, **options)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual(self.page_file.read_text(encoding="utf-8"), "before")
        return done.stderr

    def check_refusals(self, run):
        self.assertIn("no run 12345", self.refused("12345"))
        self.assertIn("named twice", self.refused(run, run, code=2))
        self.assertIn("8 at most", self.refused(*(str(n) for n in range(9)), code=2))
        done = self.cluster.run("wlb", "report", run, "-o", "/nowhere/page.html", check=False)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, "file /nowhere/page.html: cannot be written: No such file")
        program = shutil.copy(harness.BUILD / "bin/wlb", self.cluster.work)
        theirs = pathlib.Path(self.cluster.home / "theirs")
        theirs.mkdir()
        os.chown(theirs, NOBODY, NOBODY)
        done = self.cluster.run("setpriv", f"--reuid={NOBODY}", "--clear-groups", program, "report", run,
                                "-o", theirs / "page.html", check=False)
        self.assertEqual((done.returncode, list(theirs.iterdir())), (1, []), done.stderr)
        self.assertIn("private_data", done.stderr)

    def ask(self, address, path=None, method="GET", **headers):
        """The status, headers and body that the server of `wlb open` replies."""
        connection = http.client.HTTPConnection(address.hostname, address.port, timeout=20)
        connection.request(method, path or address.path, headers={"Host": address.netloc, **headers})
        reply = connection.getresponse()
        body = reply.read().decode()
        connection.close()
        return reply.status, dict(reply.getheaders()), body

    def check_rules(self, address):
        status, headers, _ = self.ask(address)
        self.assertEqual((status, headers["Cache-Control"], headers["Referrer-Policy"]), (200, "no-store", "no-referrer"))
        self.assertRegex(headers["Content-Security-Policy"], r"^default-src 'none';.*connect-src 'self'; frame-ancestors 'none'$")
        self.assertFalse([name for name in headers if name.lower().startswith("access-control")])
        self.assertGreaterEqual(len(address.path), 2 + 32)
        for expected, words in ((403, {"path": "/"}), (403, {"path": address.path[:-2] + "/"}), (403, {"path": "/../../etc/passwd"}),
                                (404, {"path": address.path + "../../etc/passwd"}), (404, {"path": address.path + "%2e%2e/wlb.conf"}),
                                (403, {"Host": "example.org"}), (403, {"Host": f"example.org:{address.port}"}), (200, {"Host": "localhost:9"}),
                                (403, {"Origin": "http://example.org"}), (403, {"Sec-Fetch-Site": "cross-site"}), (405, {"method": "POST"})):
            status, headers, body = self.ask(address, **words)
            self.assertEqual(status, expected, words)
            self.assertTrue(expected == 200 or "wlb-data" not in body, words)
        with open("/proc/net/tcp", encoding="ascii") as sockets:
            local = [line.split()[1] for line in sockets if line.split()[1].endswith(f":{address.port:04X}")]
        self.assertEqual({place.split(":")[0] for place in local}, {"0100007F"}, "it listens on loopback alone")

    def check_followed(self, address, name):
        """The page shows new steps without a reload, and says why it shows no more."""
        page = self.chromium.open(address.geturl(), timer_rate=10)
        self.assertEqual(page.messages, [])
        page.evaluate("window.isSame = true")
        shown = "[...document.querySelectorAll('#loss-table tbody tr')].length"
        before, renewed = page.evaluate(shown), "document.querySelector('header').innerText.includes('301')"
        self.assertFalse(page.evaluate(renewed))
        self.cluster.sql(f"""insert into steps (run_id, step, attempt_id, loss, tokens, step_time_s, tokens_per_s, recorded_at)
                select run_id, 301, attempt_id, 1.5, 4096, 0.5, 8192, now() from steps where run_id = (select id from runs where name = '{name}')
                limit 1;
            update runs set steps = 301, last_step = 301, last_loss = 1.5, job_name = {quoted(MARKUP)} where name = '{name}'""")
        harness.wait_for("the page has the new step", lambda: page.evaluate(renewed), 20)
        self.assertTrue(page.evaluate("window.isSame && window.hit === undefined && document.querySelectorAll('img').length === 0"))
        self.assertGreaterEqual(page.evaluate(shown), before)
        self.assertTrue(all(url.startswith(f"http://{address.netloc}{address.path}") for url in page.requests if not url.startswith("data:")))
        self.cluster.sql(f"delete from runs where name = '{name}'")
        harness.wait_for("the page says that the run is not there any more",
                         lambda: page.evaluate("document.getElementById('status').textContent.includes('Not followed: ')"), 20)
        self.assertIn(name, page.evaluate("document.getElementById('status').textContent"))

    def start_open(self, name, standard_input):
        """wlb open, and the address that it prints."""
        program = subprocess.Popen([harness.BUILD / "bin/wlb", "open", name], cwd=self.cluster.work, env=self.cluster.env, text=True,
                                   stdin=standard_input, stdout=subprocess.PIPE)
        os.close(standard_input)
        self.addCleanup(program.stdout.close)
        self.addCleanup(program.kill)
        address = urllib.parse.urlsplit(program.stdout.readline().strip())
        self.assertRegex(program.stdout.readline(), rf"^From another machine, first: ssh -N -L {address.port}:127.0.0.1:{address.port} \S+$")
        return program, address

    def test_open(self):
        name = self.make_rows("9003", 300)
        self.cluster.sql(f"update runs set state = 'running', ended_at = null where name = '{name}'")
        self.assertIn("no run 12345", self.cluster.run("wlb", "open", "12345", check=False).stderr)
        (ours, its), (pipe, kept), (another, kept_open) = pty.openpty(), os.pipe(), os.pipe()
        self.addCleanup(os.close, kept_open)
        program, address = self.start_open(name, its)
        other, its_address = self.start_open(name, pipe)
        hung_up, _ = self.start_open(name, another)
        self.assertNotEqual(address.path, its_address.path)
        self.assertEqual(self.ask(its_address, address.path)[0], 403)
        self.check_rules(address)
        self.check_followed(address, name)
        # By the terminal that is closed, by the end of another input, and by a signal.
        self.assertEqual([each.poll() for each in (program, other, hung_up)], [None] * 3)
        os.close(ours)
        os.close(kept)
        hung_up.send_signal(signal.SIGHUP)
        self.assertEqual([each.wait(10) for each in (program, other, hung_up)], [0] * 3)

    def test_pages(self):
        run, long_run, other = self.make_run(), self.make_rows("9000", STEPS), self.make_rows("9001", 300)
        self.cluster.sql("insert into runs (name, job_id, uid, user_name, state) values ('9002', 9002, 0, 'root', 'starting')")
        for check, runs in ((self.check_run, [run]), (self.check_long_run, [long_run]), (self.check_both, [run, other]),
                            (self.check_empty_run, ["9002"]), (self.check_refusals, [run])):
            with self.subTest(check.__name__):
                check(*runs)


if __name__ == "__main__":
    if shutil.which(browser.PROGRAM) is None:
        print(f"skipped: {browser.PROGRAM} is not installed; scripts/setup --development installs it")
        sys.exit(77)
    harness.main()
