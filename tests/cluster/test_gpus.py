#!/usr/bin/env python3
"""The GPUs of a node and of a run: wlb doctor, the record of an attempt and wlb show, on the CUDA device that
tests/cuda_host compiles for the host."""
import json
import os

import harness
import training

WORKER = harness.BUILD / "tests/wlb-worker-cuda-host"
MODEL = {**training.MODEL, "hidden_size": 128, "num_attention_heads": 2}
KIND = {"model": "cuda_host", "memory_bytes": 16 << 30, "driver": "", "driver_cuda": "13.0", "cuda": "13.0"}


class Gpus(training.TrainingTest):
    nodes = 2

    def setUp(self):
        self.cluster.work.joinpath("model.json").write_text(json.dumps(MODEL), encoding="utf-8")
        programs = self.cluster.work / "programs"
        programs.mkdir(exist_ok=True)
        worker = programs / "wlb-worker"
        worker.unlink(missing_ok=True)
        worker.symlink_to(WORKER)
        self.path = f"{programs}:{self.cluster.env['PATH']}"

    def doctor(self, **env):
        result = self.cluster.run("wlb", "doctor", "--json", check=False, env={"PATH": self.path, **env})
        return {f["check"]: (f["finding"], f["detail"], f["remedy"]) for f in json.loads(result.stdout)}["gpus"]

    def test_doctor(self):
        driver = "driver unknown for CUDA 13.0, wlb-worker has CUDA 13.0"
        self.assertEqual(self.doctor(CUDA_HOST_DEVICES="2"), ("ok", f"2 x cuda_host, 17.2 GB, {driver}", ""))
        finding, detail, remedy = self.doctor(CUDA_HOST_DEVICES="2", SLURM_TASKS_PER_NODE="4(x2)")
        self.assertEqual(finding, "warn")
        self.assertIn("4 tasks of a node are 2 ranks a GPU", detail)
        self.assertIn("--ntasks-per-node", remedy)
        self.assertEqual(self.doctor(CUDA_HOST_DEVICES="0")[0], "warn" if os.path.exists("/dev/nvidia0") else "info")

    def test_record(self):
        words = " ".join(training.arguments("float32", 2)[:-2])
        job = self.cluster.sbatch(
            # The run-time library of the sanitizers must come before preloaded ones.
            f"export PATH={self.path} CUDA_HOST_DEVICES=2 ASAN_OPTIONS=detect_leaks=0 LD_PRELOAD=\n"
            f"wlb run -- wlb-worker {words} --device cuda --seq-length 48 --global-batch-size 6",
            "--wlb-layout=tp=1,cp=1,pp=1", "--ntasks-per-node=3", nodes=2)
        run = self.finish(job)
        attempt = run["attempts"][0]
        self.assertEqual(attempt["gpus"], {"kinds": [{**KIND, "gpus": 4}], "ranks_per_gpu": 2})
        self.assertEqual([(place["node"], place["local_rank"], place["device"]) for place in attempt["rank_map"]],
                         [(f"n{node}", rank, rank % 2) for node in (1, 2) for rank in range(3)])
        shown = self.cluster.run("wlb", "show", job).stdout
        self.assertIn("\nGPUs\n  attempt 1: 4 x cuda_host, 17.2 GB, driver unknown for CUDA 13.0; up to 2 ranks a GPU\n"
                      "    n1: local rank 0 on cuda:0, 1 on cuda:1, 2 on cuda:0\n", shown)

    def test_without_gpus(self):
        words = " ".join(training.arguments("float32", 2)[:-2])
        job = self.cluster.sbatch(f"wlb run -- wlb-worker {words}", "--wlb-layout=auto", nodes=1)
        run = self.finish(job)
        self.assertIsNone(run["attempts"][0]["gpus"])
        self.assertNotIn("device", run["attempts"][0]["rank_map"][0])
        self.assertNotIn("GPUs", self.cluster.run("wlb", "show", job).stdout)


if __name__ == "__main__":
    harness.main()
