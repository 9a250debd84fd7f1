"""Writes the rows of a Parquet file, standard input, as JSON lines to standard output, for `wlb data build`.

    python3 parquet_lines.py COLUMN < FILE.parquet

Each line is an object with the column alone, which must be of strings or of lists of strings, also in dictionaries. A column of bytes, as
some writers make it, is read as UTF-8, and what is none becomes U+FFFD. The reason of a failure is on standard error: exit code 3 where
pyarrow is missing, and 2 where the file cannot be used.
"""

import json
import os
import sys

ROWS = 256  # held in memory


def refuse(message, code=2):
    print(message, file=sys.stderr)
    sys.exit(code)


def has_texts(pyarrow, kind):
    types = pyarrow.types
    if types.is_dictionary(kind) or types.is_list(kind) or types.is_large_list(kind):
        return has_texts(pyarrow, kind.value_type)
    names = "string", "large_string", "string_view", "binary", "large_binary", "binary_view", "null"
    return any(getattr(types, f"is_{name}")(kind) for name in names)


def decode(value):
    """What json does not write: bytes."""
    return value.decode("utf-8", errors="replace")


def main():
    column = sys.argv[1]
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        refuse(f"needs the package pyarrow ({error}): {sys.executable} -m pip install pyarrow; --python names another Python", 3)
    try:
        file = pyarrow.parquet.ParquetFile(sys.stdin.buffer)
        if column not in file.schema_arrow.names:
            refuse(f"has no column '{column}' among {', '.join(file.schema_arrow.names)}: name one by --json-key")
        kind = file.schema_arrow.field(column).type
        if not has_texts(pyarrow, kind):
            refuse(f"column '{column}' is of type {kind}, and must be of strings: name another by --json-key")
        for batch in file.iter_batches(batch_size=ROWS, columns=[column]):
            for value in batch.column(0).to_pylist():
                sys.stdout.write(json.dumps({column: value}, default=decode) + "\n")
    except (pyarrow.ArrowException, OSError) as error:
        if isinstance(error, BrokenPipeError):
            raise
        refuse(f"{error}".replace("\n", " "))


if __name__ == "__main__":
    try:
        main()
        sys.stdout.flush()
    except (BrokenPipeError, KeyboardInterrupt):  # the build has ended, or is ending
        sys.stderr.close()
        os._exit(1)
