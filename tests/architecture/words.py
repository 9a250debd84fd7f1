"""Phrases that string literals and documents must not have: users took each of them for something else."""
import re

# phrase: what to write instead.
PHRASES = {
    "queued again": "requeued",
    "after a loss": "after a failure: a loss is a number of the training",
    "left it out": "excluded",
    "in the words of": "in the syntax of",
}
# A comment, a character, or literals that the compiler joins.
TOKEN = re.compile(r"/\*.*?\*/|//[^\n]*|'(?:\\.|[^'\\\n])+'|" r'("(?:\\.|[^"\\\n])*"(?:\s*"(?:\\.|[^"\\\n])*")*)', re.DOTALL)


def literals(text):
    """(offset, text) of the string literals of a C source. Between those that the compiler joins there are NULs, so that offsets hold."""
    for match in TOKEN.finditer(text):
        if match.group(1):
            yield match.start(1), re.sub(r'"\s*"', lambda gap: "\0" * len(gap.group()), match.group(1))


def _pattern(phrase):
    """The phrase with any space between its words, and NULs between any of its letters."""
    return re.compile(r"[\s\0]*\s[\s\0]*".join(r"\0*".join(word) for word in phrase.split()), re.IGNORECASE)


def _find(path, text, parts):
    for phrase, instead in PHRASES.items():
        for offset, part in parts:
            for match in _pattern(phrase).finditer(part):
                yield f"{path}:{text.count(chr(10), 0, offset + match.start()) + 1}: '{phrase}': write {instead}"


def check_words(sources, documents):
    """`sources` and `documents` are path -> text. Of sources the string literals are looked at, of documents all text."""
    findings = [finding for path, text in sorted(sources.items()) for finding in _find(path, text, list(literals(text)))]
    return findings + [finding for path, text in sorted(documents.items()) for finding in _find(path, text, [(0, text)])]
