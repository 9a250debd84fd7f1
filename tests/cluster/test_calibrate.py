#!/usr/bin/env python3
"""Runs `wlb calibrate` on four nodes on two switches, and tests which calibrations the coordinator stores, which users it
gives them to, and the run that is then planned with one."""
import copy
import json
import math

import harness
import test_wlbd_api
import training

# All nodes are on this host: the variables with which Slurm names a node's switches are set here.
MEASURE = """srun --mpi=pmix bash -c 'case $SLURMD_NODENAME in n[12]) leaf=a ;; *) leaf=b ;; esac
export SLURM_TOPOLOGY_ADDR=top.$leaf.$SLURMD_NODENAME SLURM_TOPOLOGY_ADDR_PATTERN=switch.switch.node
exec wlb calibrate --quick --seconds 10 --threads 1 --head-dim 32 --deviation 1000 --output machine.json'"""


class Measured(training.TrainingTest):
    def measure(self):
        """Repeats the job until its measurement is accepted, since other tests may use this host; returns its id."""
        for _ in range(5):
            job = self.cluster.sbatch(MEASURE, "--ntasks-per-node=2", nodes=4)
            state = self.cluster.wait_job(job, 240)
            if state == "COMPLETED":
                return job
            self.assertIn("measure on idle nodes", self.cluster.output(job), state)
        return self.fail("refused five times")

    def test_from_the_job_to_the_run(self):
        self.assertIn("not measured", self.doctor())
        job = self.measure()
        self.assertIn("stored by the coordinator", self.cluster.output(job))
        machine = json.loads((self.cluster.work / "machine.json").read_text(encoding="utf-8"))
        self.assertEqual((machine["measured"]["ranks"], machine["measured"]["nodes"], machine["gpus_per_node"]), (8, 4, 2))
        for link in ("node_link", "network_link", "switch_link"):
            self.assertGreater(machine[link]["bytes_per_s"], 1e6, link)
        rows = self.cluster.sql("select uid, is_admin, job_id, ranks_per_node, nodes, node_type from calibrations")
        self.assertEqual(rows[0][:5], ["0", "t", str(job), "2", "{n1,n2,n3,n4}"])
        self.assertEqual(rows[0][5], machine["name"])
        self.assertIn("measured: an administrator's calibration", self.doctor())
        self.disturb(machine, rows[0][5])
        run = self.submit(layout="tp=1,cp=1,pp=1,dp=8", iterations=12)
        self.assertEqual(self.cluster.wait_job(run), "COMPLETED", self.cluster.output(run))
        self.assertIn("planned with an administrator's calibration", self.cluster.output(run))
        used = json.loads((self.cluster.work / f".wlb/machine-{run}.json").read_text(encoding="utf-8"))
        self.assertEqual(used["gemm"], machine["gemm"])
        losses = [json.loads(line)["loss"] for line in (self.cluster.work / f"m-{run}.jsonl").read_text(encoding="utf-8").splitlines()]
        expected = training.single_process_losses(iterations=12)
        for step, loss in enumerate(losses, 1):
            self.assertTrue(math.isclose(loss, expected[step], rel_tol=1e-9), f"step {step}: {loss}, {expected[step]}")
        run = self.submit(layout="auto", iterations=2)
        self.assertEqual(self.cluster.wait_job(run), "COMPLETED", self.cluster.output(run))
        self.assertIn("of other users' calibrations, since it differs from theirs: rope\n",
                      self.cluster.run("wlb", "show", str(run)).stdout)

    def disturb(self, machine, node_type):
        """Three users measure an operation that is ten times as slow as the administrator's."""
        slow = {name: 10 * value for name, value in machine["operations"]["rope"].items()}
        machine = {**machine, "operations": {**machine["operations"], "rope": slow}}
        for uid in (1001, 1002, 1003):
            self.cluster.sql(f"""select wlb_calibration_put({uid}, false, 1, '{node_type}', 2, '["n1"]',
                $json${json.dumps(machine)}$json$)""")
        self.assertIn("which are used: rope", self.doctor())

    def doctor(self):
        return self.cluster.run("wlb", "doctor", check=False).stdout


class Kept(test_wlbd_api.ApiTest):
    for_others = True
    TYPE = "some processor x 8"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.machine = json.loads((harness.ROOT / "libwlb/machines/CPU.json").read_text(encoding="utf-8"))

    def setUp(self):
        self.cluster.sql("delete from calibrations")

    def body(self, **changed):
        return {"node_type": self.TYPE, "ranks_per_node": 2, "nodes": ["n1"], "machine": self.machine, **changed}

    def put(self, uid, speed=1.0, admin=False):
        machine = {**self.machine, "peak_flops": self.machine["peak_flops"] * speed}
        self.cluster.sql(f"select wlb_calibration_put({uid}, {admin}, 1, '{self.TYPE}', 2, '[\"n1\"]', $json${json.dumps(machine)}$json$)")

    def get(self, uid, query="&ranks_per_node=2"):
        """Returns the reply for a user of that uid; it is read from the database, since the test has no such accounts."""
        ranks = query.partition("ranks_per_node=")[2] or "null"
        return json.loads(self.cluster.sql(f"select wlb_calibration_json('{self.TYPE}', {ranks}, {uid})")[0][0])

    def test_who_may_store(self):
        self.assertEqual(self.api.call("POST", "/v1/calibrations", self.body())[0], 200)
        status, reply = self.api.call("POST", "/v1/calibrations", self.body(), test_wlbd_api.NOBODY)
        self.assertEqual((status, "job_id" in reply["error"]), (403, True), reply)
        job = int(self.new_run())
        status, reply = self.api.call("POST", "/v1/calibrations", self.body(job_id=job), test_wlbd_api.NOBODY)
        self.assertEqual(status, 403, reply)
        status, reply = self.api.call("POST", "/v1/calibrations", self.body(job_id=4000000), test_wlbd_api.NOBODY)
        self.assertEqual(status, 409, reply)
        self.assertEqual(self.api.call("POST", "/v1/calibrations", self.body(job_id=job))[0], 200)
        path = "/v1/calibrations?node_type=some%20processor%20x%208&ranks_per_node=2"
        status, reply = self.api.call("GET", path, uid=test_wlbd_api.NOBODY)
        self.assertEqual((status, reply["source"], reply["machine"]["name"]), (200, "administrator", "CPU"))
        self.assertIsNone(self.api.call("GET", path[:-1] + "3")[1]["machine"], "another number of ranks on a node")

    def test_a_user_stores_only_nodes_of_his_running_job(self):
        user = test_wlbd_api.NOBODY
        job = int(self.cluster.run("sbatch", "--parsable", "-w", "n1", "-o", "/dev/null", "--wrap", "sleep 600", cwd="/",
                                   user=user, group=user, extra_groups=[]).stdout)
        self.addCleanup(self.cluster.run, "scancel", job)
        harness.wait_for(f"job {job}", lambda: self.cluster.job(job)["JobState"] == "RUNNING", 20)
        for nodes, expected in ((["n1"], 200), (["n2"], 403), (["n1", "n2"], 403), (["n[1-1]"], 403)):
            status, reply = self.api.call("POST", "/v1/calibrations", self.body(job_id=job, nodes=nodes), user)
            self.assertEqual(status, expected, f"{nodes}: {reply}")
            if expected == 403:
                self.assertIn(f"job {job} has no node {nodes[-1]}; it has n1", reply["error"])
        self.cluster.run("scancel", job)
        self.cluster.wait_job(job)
        status, reply = self.api.call("POST", "/v1/calibrations", self.body(job_id=job), user)
        self.assertIn((status, "does not run" in reply["error"]), [(403, True), (409, False)], reply)
        self.assertEqual(self.cluster.sql("select uid, is_admin, nodes from calibrations"), [[str(user), "f", "{n1}"]])

    def test_hostile_values(self):
        bad = [self.body(node_type=""), self.body(node_type="x" * 129), self.body(node_type="a\n"),
               self.body(ranks_per_node=0), self.body(ranks_per_node=1e9), self.body(nodes=[1]), self.body(nodes="n1"),
               self.body(job_id=-1), self.body(machine=None), self.body(machine=[]), self.body(machine={})]
        for field, value in (("peak_flops", -1), ("peak_flops", 1e300), ("slowest_rank", 0.5), ("slowest_rank", 11), ("memory_bytes", "many"), ("gpus_per_node", 1e6),
                             ("node_link", {}), ("attention_tile_tokens", 2 ** 40), ("unknown", 1), ("operation_s", -1),
                             ("gemm", {"rows": [1, 1], "depth": [1], "columns": [1], "flops_per_s": [[[1e9]], [[1e9]]]}),
                             ("gemm", {"rows": [1], "depth": [1], "columns": [1], "flops_per_s": [[[0]]]}),
                             ("attention", {"q_tokens": [64] * 9}), ("sources", {"x": "y" * (300 << 10)})):
            bad.append(self.body(machine={**copy.deepcopy(self.machine), field: value}))
        for body in bad:
            status, reply = self.api.call("POST", "/v1/calibrations", body)
            self.assertEqual(status, 400, f"{str(body)[:300]}: {reply}")
        for query in ("", "?node_type=", "?node_type=" + "x" * 129, "?node_type=x&ranks_per_node=0",
                      "?node_type=x&ranks_per_node=2x"):
            self.assertEqual(self.api.call("GET", f"/v1/calibrations{query}")[0], 400, query)
        self.assertEqual(self.cluster.sql("select count(*) from calibrations"), [["0"]])

    def test_a_user_serves_himself(self):
        self.put(1001, 0.9)
        self.assertEqual(self.get(1001)["source"], "own")
        self.assertIsNone(self.get(1002)["machine"])
        self.assertEqual(self.get(1002)["calibrations"], 1)
        self.put(1001, 0.8)
        self.assertEqual(self.get(1001)["machine"]["peak_flops"], self.machine["peak_flops"] * 0.8, "the newest")

    def test_users_that_agree_serve_others(self):
        for uid in (1001, 1002, 1003):
            self.put(uid, 1 + 0.01 * (uid - 1001))
            self.assertIsNone(self.get(1009)["machine"], "three others are needed")
        self.put(1004, 1.02)
        self.assertEqual(self.get(1009)["source"], "agreement")
        self.assertEqual((self.get(1009)["users"], self.get(1009)["machine"]), (4, {**self.machine, "peak_flops": self.machine["peak_flops"] * 1.01}))
        self.put(1005, 10)  # absurd: outvoted even for himself
        self.assertEqual((self.get(1005)["source"], self.get(1005)["outvoted"]), ("agreement", 1))
        self.put_measured(1006, {**self.machine, "slowest_rank": 2.0})  # all computation takes twice as long
        self.assertEqual((self.get(1006)["source"], self.get(1006)["outvoted"]), ("agreement", 2))
        self.put_measured(1006, {**self.machine, "slowest_rank": 1.1})
        self.assertEqual((self.get(1006)["source"], self.get(1006)["outvoted"]), ("own", 1))

    def test_an_administrators_serves_all_unless_outvoted(self):
        self.put(1001)
        self.put(0, 1.1, admin=True)
        for uid in (1001, 1009):
            self.assertEqual(self.get(uid)["source"], "administrator")
        own, his = (int(row[0]) for row in self.cluster.sql("select id from calibrations order by id"))
        self.assertEqual((self.get(1001)["id"], self.get(1001)["before"]["id"]), (his, own))
        self.assertIsNone(self.get(1009)["before"], "it has not served this user")
        self.put(0, 3, admin=True)
        for uid in (1002, 1003):
            self.put(uid)
            self.assertEqual(self.get(1009)["source"], "administrator", "an administrator's word counts as that of two users")
        self.put(1004)
        self.assertEqual((self.get(1009)["source"], self.get(1009)["outvoted"]), ("agreement", 1))

    def measured(self, rope_s=1e-9, **changed):
        """A machine with measured operations and a measured link inside a node."""
        operations = {name: {"call_s": 1e-6, "element_s": 1e-9} for name in ("add", "adamw", "rope")}
        operations["rope"]["element_s"] = rope_s
        operations["adamw"]["element_s"] = 3e-9  # seven reals
        calls = {"bytes": [4096, 65536], **{name: [1e-5, 2e-5] for name in ("gather_s", "reduce_s", "send_s")}}
        return {**self.machine, "operations": operations, "node_calls": calls, **changed}

    def put_measured(self, uid, machine, admin=False):
        return json.loads(self.cluster.sql(f"""select wlb_calibration_put({uid}, {admin}, 1, '{self.TYPE}', 2, '["n1"]',
            $json${json.dumps(machine)}$json$)""")[0][0])

    def test_a_disturbed_operation_is_outvoted(self):
        for uid, rope_s in ((1001, 1e-9), (1002, 1.2e-9), (1003, 1.4e-9)):
            self.put_measured(uid, self.measured(rope_s))
        self.put_measured(0, self.measured(30e-9), admin=True)
        found = self.get(1009)
        self.assertEqual((found["source"], found["outvoted"], found["outvoted_operations"]), ("administrator", 0, ["rope"]))
        self.assertEqual(found["machine"], self.measured(1.2e-9))
        self.put_measured(0, self.measured(0.2e-9), admin=True)  # too fast
        self.assertEqual(self.get(1009)["machine"], self.measured(1.2e-9))
        self.put_measured(0, self.measured(2.3e-9), admin=True)
        self.assertEqual((self.get(1009)["machine"], self.get(1009)["outvoted_operations"]), (self.measured(2.3e-9), []))
        self.cluster.sql("delete from calibrations where uid = 1003")
        self.put_measured(0, self.measured(30e-9), admin=True)
        self.assertEqual(self.get(1009)["machine"], self.measured(30e-9), "two others are no majority")

    def test_a_part_that_differs_is_outvoted(self):
        """Of a file whose three speeds are those of others: calls inside a node, products of some shapes, a link."""
        def machine(gather_s=1e-5, rate=2e12, link=1e10, rows=(64, 128), nodes=2):
            calls = {"bytes": [4096, 65536], "gather_s": [gather_s, 2e-5], "reduce_s": [1e-5, 2e-5], "send_s": [1e-5, 2e-5]}
            gemm = {"rows": list(rows), "depth": [64], "columns": [64], "flops_per_s": [[[rate]], [[2e12]]]}
            measured = {"at": "", "host": "n1", "device": "cpu", "dtype": "float32", "wlb": "", "threads": 1, "ranks": 2, "nodes": nodes}
            return self.measured(node_calls=calls, gemm=gemm, network_link={"bytes_per_s": link, "latency_s": 1e-6}, measured=measured)

        others = [machine(1.1e-5, 1.9e12), machine(1.2e-5, 2e12), machine(1.3e-5, 2.1e12)]
        for uid, each in enumerate(others, 1001):
            self.put_measured(uid, each)
        for wrong, part, replaced in ((machine(1e-3), "node_calls", {"node_calls": others[1]["node_calls"]}),
                                      (machine(1e-6), "node_calls", {"node_calls": others[1]["node_calls"]}),
                                      (machine(rate=2e11), "gemm", {"gemm": others[1]["gemm"]}),
                                      (machine(link=1e9), "network_link", {})):
            with self.subTest(part=part):
                self.put_measured(0, wrong, admin=True)
                found = self.get(1009)
                self.assertEqual((found["source"], found["outvoted_parts"]), ("administrator", [part]))
                self.assertEqual(found["machine"], {**wrong, "network_link": others[0]["network_link"], **replaced})
        for right in (machine(4e-5), machine(rate=0.6e12), machine(link=3e9), machine(link=1e9, nodes=1)):
            self.put_measured(0, right, admin=True)
            self.assertEqual((self.get(1009)["machine"], self.get(1009)["outvoted_parts"]), (right, []))

    def test_parts_at_other_points_serve_their_owner_alone(self):
        def machine(bytes_, seconds):
            return self.measured(node_calls={"bytes": bytes_, **{name: seconds for name in ("gather_s", "reduce_s", "send_s")}})

        usual, strange = machine([4096, 65536], [1e-5, 2e-5]), machine([4096, 65537], [1e-3, 2e-3])
        for uid in (1001, 1002, 1003):
            self.put_measured(uid, usual)
        self.put_measured(1004, strange)
        self.assertEqual((self.get(1004)["machine"], self.get(1004)["source"]), (strange, "own"))
        self.assertEqual((self.get(1009)["source"], self.get(1009)["machine"]), ("agreement", usual))

    def full(self, factor=1.0, nodes=2, **changed):
        """A machine with all that can be measured, each speed times `factor`."""
        def link(rate):
            return {"bytes_per_s": rate * factor, "latency_s": 1e-6 / factor}

        machine = self.measured(
            gemm={"rows": [64, 128], "depth": [64], "columns": [64], "flops_per_s": [[[1.9e12 * factor]], [[2e12 * factor]]]},
            attention={"q_tokens": [64], "k_tokens": [64, 128], "forward_flops_per_s": [[1e12 * factor, 1.1e12 * factor]],
                       "backward_flops_per_s": [[0.8e12 * factor, 0.9e12 * factor]]},
            node_link=link(2e10), network_link=link(6e9), slowest_rank=1.1,
            measured={"at": "", "host": f"n{factor}", "device": "cpu", "dtype": "float32", "wlb": "", "threads": 1, "ranks": 2, "nodes": nodes})
        for name in ("gather_s", "reduce_s", "send_s"):
            machine["node_calls"][name] = [1e-5 / factor, 2e-5 / factor]
        for operation in machine["operations"].values():
            operation.update({name: value / factor for name, value in operation.items()})
        machine.update({name: machine[name] * factor for name in ("peak_flops", "memory_bytes_per_s")}, **changed)
        return machine

    def numbers(self, value, path=""):
        """{path: number} of all numbers of a machine."""
        members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        own = {path: value} if isinstance(value, (int, float)) else {}
        return own | {place: number for key, member in members for place, number in self.numbers(member, f"{path}/{key}").items()}

    def check_serves_honest_numbers(self, honest):
        """Each number that others get is between those of the honest users, and the whole is a machine that can be stored."""
        served = self.get(1009)
        self.assertEqual(served["source"], "agreement")
        found, theirs = self.numbers(served["machine"]), [self.numbers(machine) for machine in honest]
        self.assertEqual(found.keys(), theirs[0].keys())
        for path, number in found.items():
            self.assertLessEqual(min(each[path] for each in theirs), number, path)
            self.assertLessEqual(number, max(each[path] for each in theirs), path)
        status, reply = self.api.call("POST", "/v1/calibrations", self.body(machine=served["machine"], node_type="another type"))
        self.assertEqual(status, 200, reply)

    def test_what_serves_others_is_nobodys_alone(self):
        """Each number is a median: not that of the newest who agrees in the speeds that calibrations are compared by, nor that of one
        whose speeds are exactly those of others and whose other numbers are not."""
        honest = [self.full(factor) for factor in (1.0, 1.02, 1.04)]
        for uid, machine in enumerate(honest, 1001):
            self.put_measured(uid, machine)
        usual = honest[1]
        slow = {"bytes_per_s": 0.26 * 6e9, "latency_s": 4e-6}
        strange = self.full(1.02)
        strange["node_calls"] = {"bytes": [4096, 65537], **{name: [4e-5, 8e-5] for name in ("gather_s", "reduce_s", "send_s")}}
        strange["gemm"]["rows"] = [64, 129]
        without = self.full(1.02)
        del without["operations"]["rope"], without["node_calls"]
        for attack in (self.full(0.81, network_link=slow, node_link=slow), self.full(1.24), strange, without,
                       {**usual, "memory_bytes": 1e9}, {**usual, "memory_bytes": 1e15}, {**usual, "gpus_per_node": 64},
                       {**usual, "network_link": slow}, {**usual, "switch_link": slow}, {**usual, "operation_s": 1.0},
                       {**usual, "attention_overhead_keys": 5000}, {**usual, "attention_tile_tokens": 1 << 20},
                       {**usual, "switch_taper": 0.01}, {**usual, "collective_processors": 100}, {**usual, "element_bytes": 8},
                       {**usual, "measured": {**usual["measured"], "threads": 512, "nodes": 1}}, {**usual, "name": "x", "sources": {}},
                       {**usual, "operations": {**usual["operations"], "silu": {"call_s": 0.1, "element_s": 1e-9}}}):
            with self.subTest({key: value for key, value in attack.items() if value != usual.get(key)}):
                self.put_measured(1004, attack)
                self.check_serves_honest_numbers(honest)
        for uid in (1004, 1005):  # two of five
            self.put_measured(uid, self.full(0.81, network_link=slow))
        self.check_serves_honest_numbers([*honest, self.full(0.81, network_link=honest[0]["network_link"])])
        self.assertEqual(self.get(1009)["machine"]["network_link"]["bytes_per_s"], honest[0]["network_link"]["bytes_per_s"])

    def test_what_is_nested_deeply_costs_nobody_the_median(self):
        deep = "(repeat('{\"a\":', 2000) || '1' || repeat('}', 2000))::jsonb"
        self.assertEqual(len(self.cluster.sql(f"select wlb_json_median(array[{deep}, {deep}, {deep}])")), 1)

    def test_a_user_has_one_voice(self):
        """However many calibrations of whichever nodes he stores: that of the newest."""
        for nodes in ('["n1"]', '["n1","n2"]', '["n2"]', '["n1","n2","n3"]', '["n3"]'):
            for uid in (1001, 1002):
                self.cluster.sql(f"""select wlb_calibration_put({uid}, false, 1, '{self.TYPE}', 2, '{nodes}', $json${json.dumps(self.machine)}$json$)""")
        self.assertEqual((self.get(1009)["machine"], self.get(1009)["calibrations"]), (None, 2))
        self.put(1003, 3)
        self.assertEqual((self.get(1003)["source"], self.get(1003)["outvoted"]), ("own", 0))
        for uid in (1003, 1004):
            self.put(uid, 0.9)
        for _ in range(10):
            self.put(1001, 1.2)
        self.assertEqual(self.get(1009)["machine"]["peak_flops"], self.machine["peak_flops"] * 0.9)

    def test_nodes_without_a_type_store_none(self):
        for changed, word in (({"node_type": "gpu"}, "n1 has no type of GPU in Slurm's GRES"), ({"node_type": "gpu:h100"}, "n1 has no type"),
                              ({"node_type": "gpu:h100", "nodes": ["n9"]}, "n9 has no type"), ({"node_type": "gpu", "nodes": []}, "'nodes'"),
                              ({"nodes": []}, "'nodes'"), ({"node_type": "processor x 8"}, "names no processor")):
            status, reply = self.api.call("POST", "/v1/calibrations", self.body(**changed))
            self.assertEqual((status, word in reply.get("error", "")), (400, True), f"{changed}: {reply}")
        self.assertEqual(self.cluster.sql("select count(*) from calibrations"), [["0"]])

    def test_what_others_contradict_is_refused(self):
        for uid in (1001, 1002, 1003):
            self.put_measured(uid, self.measured())
        rates = {"node_link": {"bytes_per_s": 1.9e8, "latency_s": 1e-6}}
        for machine, words in (
                (self.measured(peak_flops=3.9e10), " FLOP/s: must be at least "),
                (self.measured(memory_bytes_per_s=1.9e9), "memory: 1.9e+09 bytes/s: must be at least 2e+09"),
                (self.measured(1.1e-7), "operation rope: 9.0909"),
                (self.measured(**rates), "node_link: 1.9e+08 bytes/s: must be at least 2e+08")):
            status, reply = self.api.call("POST", "/v1/calibrations", self.body(machine=machine))
            self.assertEqual(status, 400, reply)
            for word in ("field 'machine': ", words, "a hundredth of the median of 3 other users'", "measure on idle nodes"):
                self.assertIn(word, reply["error"])
        self.assertEqual(self.api.call("POST", "/v1/calibrations", self.body(machine=self.measured(peak_flops=4.1e10)))[0], 200)
        self.cluster.sql("delete from calibrations where uid = 1003")
        self.assertEqual(self.api.call("POST", "/v1/calibrations", self.body(machine=self.measured(1.1e-7)))[0], 200)

    def test_what_no_device_can_is_refused(self):
        def operation(**times):
            return {"operations": {"add": {"call_s": 1e-6, "element_s": 1e-9, **times}}}

        grid = {"rows": [64, 128], "depth": [64], "columns": [64]}
        calls = {"bytes": [65536], "gather_s": [1e-5], "reduce_s": [1e-5], "send_s": [1e-9]}
        for changed, words in (
                (operation(element_s=0), "operations: add: element_s is 0: it must be above 0"),
                (operation(element_s=-1e-9), "operations: add: element_s is -1e-09"),
                (operation(element_s=1e-15), "operations: add: of an element: 12 bytes in 1e-15 s: must be at most 2e+12"),
                ({"operations": {"rope_angles": {"call_s": 0, "element_s": 1e-14}}}, "the time of one FLOP at peak_flops"),
                ({"gemm": {**grid, "flops_per_s": [[[5e12]], [[5e12]]]}}, "product of 64 x 64 x 64: 5e+12 FLOP/s: must be at most 4e+12"),
                ({"gemm": {**grid, "flops_per_s": [[[3e12]], [[2e11]]]}}, "product of 128 x 64 x 64: 2e+11 FLOP/s, where the next"),
                ({"attention": {"q_tokens": [64], "k_tokens": [64], "forward_flops_per_s": [[1e12]],
                                "backward_flops_per_s": [[9e12]]}}, "attention of 64 queries, 64 keys: 9e+12 FLOP/s"),
                ({"node_calls": calls}, "node_calls: send_s: 65536 bytes in 1e-09 s"),
                ({"switch_link": {"bytes_per_s": 1e13, "latency_s": 0}}, "switch_link: 1e+13 bytes in 1 s"),
                ({"slowest_rank": 3.5}, "slowest_rank is 3.5: must be at most 3 times")):
            status, reply = self.api.call("POST", "/v1/calibrations", self.body(machine={**self.machine, **changed}))
            self.assertEqual((status, words in reply.get("error", "")), (400, True), f"{words}: {reply}")
        self.assertEqual(self.cluster.sql("select count(*) from calibrations"), [["0"]])

    def test_a_user_keeps_a_bounded_number(self):
        self.cluster.sql(f"""select wlb_calibration_put(1001, false, 1, 'type ' || i, 2, '["n1"]', $json${json.dumps(self.machine)}$json$)
            from generate_series(1, 70) i""")
        self.put(1002)
        self.assertEqual(self.cluster.sql("select uid, count(*), min(node_type) from calibrations group by uid order by uid"),
                         [["1001", "64", "type 10"], ["1002", "1", self.TYPE]])


if __name__ == "__main__":
    harness.main()
