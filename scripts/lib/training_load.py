"""A training run in a coordinator's database, whose agents wlb-training-load simulates: faults are planted in it, and
rows of table `verdicts` and GET /v1/runs/RUN/ranks are read until they name them."""
import hashlib
import http.client
import json
import os
import pwd
import subprocess
import threading
import time
import uuid

RUN = "2000001"  # no job of a private cluster has that number


class Failed(AssertionError):
    """A wait reached its limit."""


class TrainingRun:
    def __init__(self, env, program, layout, ranks_per_node, on_fault):
        """env: that of a cluster; layout: tp, cp, pp, dp; on_fault: as wlb_items_merge has it."""
        self.env, self.program, self.layout, self.ranks_per_node = env, program, layout, ranks_per_node
        self.world = layout[0] * layout[1] * layout[2] * layout[3]
        self.attempt, self.load, self.events, self.reader = str(uuid.uuid4()), None, [], None
        uid = os.getuid()
        names = f"select 'node' || k from generate_series(1, {self.world // ranks_per_node}) k"
        self.sql(f"""
            insert into runs (name, job_id, uid, user_name, job_name, state, train_iters, submitted_at, started_at, policy)
            values ('{RUN}', {RUN}, {uid}, '{pwd.getpwuid(uid).pw_name}', 'training', 'running', 1000000, now(), now(),
                '{{"on_fault":"{on_fault}"}}');
            insert into attempts (run_id, number, uuid, state, launched, nodes, world_size, tp, cp, pp, dp, started_at)
            select id, 1, '{self.attempt}', 'running', true, array({names}), {self.world}, {','.join(map(str, layout))}, now()
            from runs where name = '{RUN}';
            insert into rank_map (attempt_id, rank, node, local_rank)
            select id, r, 'node' || r / {ranks_per_node} + 1, r % {ranks_per_node}
            from attempts, generate_series(0, {self.world} - 1) r where uuid = '{self.attempt}'""")

    def sql(self, text):
        return subprocess.run(["psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-c", text], env=self.env,
                              capture_output=True, text=True, check=True).stdout.strip()

    # ---- the agents --------------------------------------------------------------------------------------------------

    def start(self, step_s, steps, faults):
        """faults: (kind, rank, step, seconds), of wlb-training-load."""
        words = [RUN, self.attempt, ",".join(map(str, self.layout)), str(self.ranks_per_node), str(step_s), str(steps)]
        words += [":".join(map(str, fault)) for fault in faults]
        self.load = subprocess.Popen([self.program, *words], env=self.env, stdout=subprocess.PIPE, text=True,
                                     start_new_session=True)
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        for line in self.load.stdout:
            self.events.append(json.loads(line))

    def stop(self):
        """Safe to call twice."""
        if self.load is not None:
            self.load.kill()
            self.load.wait()
            self.reader.join()
            self.load.stdout.close()

    def wait_event(self, event, number, timeout_s):
        """Returns the event of that name and number, from 0."""

        def found():
            events = [e for e in self.events if e["event"] == event]
            return events[number] if len(events) > number else None

        return self.wait(f"event {event} {number} of the load", found, timeout_s)

    def wait(self, what, condition, timeout_s):
        end = time.monotonic() + timeout_s
        while True:
            ended = self.load.poll()
            if ended is not None:
                self.reader.join()
            value = condition()
            if value:
                return value
            if time.monotonic() > end or ended is not None:
                raise Failed(f"{what}: not within {timeout_s} s" if ended is None else f"{what}: the load has ended")
            time.sleep(0.1)

    # ---- verdicts ----------------------------------------------------------------------------------------------------

    def verdicts(self):
        """Rows of the table, the oldest first; times in seconds since 1970."""
        return json.loads(self.sql(
            "select coalesce(json_agg(v order by id), '[]') from (select id, watcher, kind, state, ranks, nodes, collective, "
            "evidence, extract(epoch from found_at) as found, extract(epoch from confirmed_at) as confirmed from verdicts) v"))

    def wait_row(self, rank, state, since, timeout_s):
        """Waits for a row that names the rank as hanging, found at or after a time since 1970, and that is in the state, or
        further. Returns it, and when it was seen."""
        order = ["suspected", "confirmed", "over"]

        def found():
            for row in self.verdicts():
                if row["kind"] == "hang" and row["ranks"] == [rank] and row["found"] >= since \
                        and order.index(row["state"]) >= order.index(state):
                    return row, time.time()
            return None

        return self.wait(f"a verdict on rank {rank} that is {state}", found, timeout_s)

    def get(self, path):
        """The reply of the coordinator, as JSON, with a credential of the user who runs this."""
        with open(self.env["WLB_CONF"], encoding="utf-8") as conf:
            settings = dict(line.strip().split(" = ", 1) for line in conf if " = " in line)
        digest = hashlib.sha256(f"GET\n{path}\n".encode()).hexdigest()
        made = subprocess.run(["munge", "-S", settings["munge_socket"], "-s", digest], capture_output=True, text=True,
                              check=True).stdout.strip()
        connection = http.client.HTTPConnection(settings["coordinator"], timeout=10)
        try:
            connection.request("GET", path, headers={"Authorization": f"MUNGE {made}"})
            return json.loads(connection.getresponse().read())
        finally:
            connection.close()

    def shown(self, rank):
        """The open verdicts of GET /v1/runs/RUN/ranks that name the rank."""
        return [v for v in self.get(f"/v1/runs/{RUN}/ranks")["verdicts"] if v["ranks"] == [rank]]

    def others(self, ranks):
        """Rows that name anything but one of these ranks as hanging."""
        return [row for row in self.verdicts() if row["kind"] != "hang" or row["ranks"] not in [[r] for r in ranks]]
