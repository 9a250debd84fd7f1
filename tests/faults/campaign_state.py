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


def open_to_append(path):
    """The file, without a last line that was half-written."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    path.write_text(text[:text.rfind("\n") + 1], encoding="utf-8")
    return path.open("a", encoding="utf-8")


def add(file, result, commit):
    file.write(json.dumps({"commit": commit, "result": dataclasses.asdict(result)}) + "\n")
    file.flush()
