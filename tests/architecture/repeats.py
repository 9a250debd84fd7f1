"""Blocks of equal lines that stand in the sources twice."""
import re

BLOCK_LINES = 10

def code_lines(text):
    """(line number, line without indentation) of the lines that are not blank, comment or include."""
    text = re.sub(r"/\*.*?\*/", lambda match: "\n" * match.group().count("\n"), text, flags=re.DOTALL)
    lines = enumerate((" ".join(re.sub(r"//.*", "", line).split()) for line in text.splitlines()), 1)
    return [(number, line) for number, line in lines if line and not line.startswith("#include")]


def find_repeats(files, block_lines=BLOCK_LINES):
    """(path, first line, path, first line, length) of each longest block of at least block_lines equal lines."""
    first_seen, repeats = {}, []
    lines = {path: code_lines(text) for path, text in sorted(files.items())}
    covered = set()
    for path, own in lines.items():
        for at in range(len(own) - block_lines + 1):
            block = tuple(line for _, line in own[at:at + block_lines])
            if block not in first_seen:
                first_seen[block] = (path, at)
                continue
            other, other_at = first_seen[block]
            if (path, at) in covered or (other == path and at - other_at < block_lines):
                continue
            length = block_lines
            theirs = lines[other]
            while at + length < len(own) and other_at + length < len(theirs) and own[at + length][1] == theirs[other_at + length][1]:
                length += 1
            covered.update((path, at + step) for step in range(length - block_lines + 1))
            repeats.append((other, theirs[other_at][0], path, own[at][0], length))
    return repeats
