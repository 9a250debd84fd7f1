"""Faults as wlbd stores them, for tests that are wlbd's substitute: the judgement is that of its own rule."""
import functools
import json
import subprocess

import harness


@functools.lru_cache(maxsize=None)
def judged(fault):
    return subprocess.run([harness.BUILD / "tests" / "judge_fault", fault], check=True, capture_output=True, text=True, timeout=10).stdout


def literal(value):
    return "null" if value is None else "'" + str(value).replace("'", "''") + "'"


def found_fault(attempt, kind, node=None, rank=None, step=None, detail="", proof=None, at="now()"):
    """The call of wlb_fault_found. `attempt` is SQL for its key, `at` SQL for the time, or seconds since 1970."""
    told = {"kind": kind, "node": node, "rank": rank, "detail": detail, "proof": proof}
    if not isinstance(at, str):
        told["broken_at"] = at if (proof or {}).get("step_broken") else 0
        at = f"to_timestamp({at})"
    return (f"select wlb_fault_found({attempt}, '{kind}', {literal(rank)}, {literal(node)}, {literal(step)}, {literal(detail)}, "
            f"{literal(proof and json.dumps(proof))}, {at}, {literal(judged(json.dumps(told)))})")
