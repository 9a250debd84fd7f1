"""Results of a campaign in a file, a line of JSON each, so that a campaign which was ended goes on where it was."""
import dataclasses
import json

from case import Result


def read(path):
    """(result, commit) of each case by its name, the newest; the last line may be half-written where a program was killed."""
    kept = {}
    if not path.exists():
        return kept
    for line in path.read_text(encoding="utf-8").split("\n")[:-1]:
        entry = json.loads(line)
        kept[entry["result"]["kind"]] = Result(**entry["result"]), entry["commit"]
    return kept


def failed_before(path):
    """(result, commit) of each case that failed, in every run of it but the newest."""
    entries = {}
    for line in path.read_text(encoding="utf-8").split("\n")[:-1]:
        entry = json.loads(line)
        entries.setdefault(entry["result"]["kind"], []).append((Result(**entry["result"]), entry["commit"]))
    return [(result, commit) for told in entries.values() for result, commit in told[:-1] if not result.passed]


def open_to_append(path):
    """The file, without a last line that was half-written. Whole lines are not rewritten, so that none can be lost."""
    file = path.open("a+b")
    file.seek(0)
    file.truncate(file.read().rfind(b"\n") + 1)
    return file


def add(file, result, commit):
    file.write(json.dumps({"commit": commit, "result": dataclasses.asdict(result)}).encode() + b"\n")
    file.flush()
