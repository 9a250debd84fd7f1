"""The rules that hold between the files of the tree. Each function returns its findings as lines of text; none is well."""
import re

from source_tree import folder_of, unit_of

HEADING = "## Folders, and what each may include"
DIFFERENCES = "## libslurm: what compat.h hides"
COMPAT = "coordinator/slurm/compat.h"
TABLE_ROW = re.compile(r"^\|(.+)\|\s*$")
CODE = re.compile(r"`([^`]+)`")
BRACES = re.compile(r"^(.*)\{(.+)\}$")


class TableError(Exception):
    pass


def _names(cell):
    """The names between backticks; `a/{b,c}` are two, a/b and a/c."""
    names = set()
    for name in CODE.findall(cell):
        several = BRACES.match(name)
        names |= {several.group(1) + part for part in several.group(2).split(",")} if several else {name.rstrip("/")}
    return names


def read_table(text):
    """folder -> set of folders and files that its files may include beside their own folder's, from the table below HEADING:
    | folder | subject | may include |, names between backticks (_names), "nothing" for none. A row | | | `more` | continues the one
    above."""
    section = text.partition(HEADING + "\n")[2].partition("\n## ")[0]
    rows = [[cell.strip() for cell in match.group(1).split("|")] for match in map(TABLE_ROW.match, section.splitlines()) if match]
    if [cell.lower() for cell in rows[0]] != ["folder", "subject", "may include"] if rows else True:
        raise TableError(f"no table | folder | subject | may include | below '{HEADING}'")
    table = {}
    folder = None
    for row in rows[2:]:
        if row[:-1] == ["", ""] and CODE.search(row[2]) and table.get(folder):
            table[folder] |= _names(row[2])
            continue
        if len(row) != 3 or len(CODE.findall(row[0])) != 1 or not row[1] or not (CODE.search(row[2]) or row[2] == "nothing"):
            raise TableError(f"a row has one folder, a subject, and folders or 'nothing': {' | '.join(row)}")
        folder = CODE.findall(row[0])[0].rstrip("/")
        if folder in table:
            raise TableError(f"{folder} has two rows")
        table[folder] = _names(row[2])
    return table


def read_differences(text):
    """Functions of libslurm that are not the same in all releases, from the first column of the table below DIFFERENCES."""
    section = text.partition(DIFFERENCES + "\n")[2].partition("\n## ")[0]
    cells = [match.group(1).split("|")[0] for match in map(TABLE_ROW.match, section.splitlines()) if match]
    names = {name for cell in cells for name in CODE.findall(cell) if re.fullmatch(r"slurm_\w+(?<!_t)", name)}
    if not names:
        raise TableError(f"no table that names functions below '{DIFFERENCES}'")
    return names


def check_differences(tree, names):
    """Only compat.h calls functions that differ between releases; without the headers of other releases nothing else shows it."""
    call = re.compile(rf"\b({'|'.join(sorted(names))})[ \t]*\(")
    return [f"{path}: calls {name}, which differs between releases of Slurm; call a function of {COMPAT}"
            for path in sorted(tree.files) if path != COMPAT for name in sorted(set(call.findall(tree.files[path])))]


def check_folders(tree, table):
    """Every folder with sources has a row, and every row sources; what a row allows is there."""
    folders = tree.folders()
    findings = [f"{folder}: has sources, but no row in the table" for folder in sorted(folders - set(table))]
    findings += [f"{folder}: has a row in the table, but no sources" for folder in sorted(set(table) - folders)]
    for folder in sorted(table):
        absent = table[folder] - folders - set(tree.files)
        findings += [f"{folder}: its row allows {name}, which is not there" for name in sorted(absent)]
    return findings


def check_includes(tree, table):
    """Every include names a file of the tree by its path from the root, and the table allows it."""
    findings = []
    used = {folder: set() for folder in table}
    for path, included in tree.includes():
        folder, target = folder_of(path), folder_of(included)
        if included not in tree.files:
            findings.append(f'{path}: includes "{included}", which is no file of the tree; paths begin at its root')
        elif folder != target:
            allowed = {included, target} & table.get(folder, set())
            used.setdefault(folder, set()).update(allowed)
            if not allowed:
                findings.append(f"{path}: includes {included}, which its row in the table does not allow")
    for folder in sorted(table):
        findings += [f"{folder}: its row allows {name}, which no file includes" for name in sorted(table[folder] - used[folder])]
    return findings


def check_guards(tree):
    """Every header has a guard, and no two have the same."""
    findings = []
    owner = {}
    for path, guard in sorted(tree.guards().items()):
        if guard is None:
            findings.append(f"{path}: has no include guard")
        elif guard in owner:
            findings.append(f"{path}: has the guard {guard} of {owner[guard]}; who includes both loses one")
        else:
            owner[guard] = path
    return findings


def unit_graph(tree, symbol_uses):
    """unit -> {unit that it needs: why}."""
    graph = {}
    for path, included in tree.includes():
        if included in tree.files and unit_of(path) != unit_of(included):
            graph.setdefault(unit_of(path), {}).setdefault(unit_of(included), f"{path} includes {included}")
    for unit, other, name in symbol_uses:
        graph.setdefault(unit, {}).setdefault(other, f"{unit} uses {name} of {other}")
    return graph


def _reachable(graph, start):
    seen, waiting = set(), [start]
    while waiting:
        for other in graph.get(waiting.pop(), ()):
            if other not in seen:
                seen.add(other)
                waiting.append(other)
    return seen


def find_circles(graph):
    """Sets of units that need each other, directly or through others, as sorted lists."""
    reach = {unit: _reachable(graph, unit) for unit in graph}
    circles = {tuple(sorted(other for other in reach[unit] if unit in reach.get(other, ()))) for unit in graph if unit in reach[unit]}
    return [list(circle) for circle in sorted(circles)]


def check_circles(tree, symbol_uses):
    """Units do not need each other."""
    return _describe_circles(unit_graph(tree, symbol_uses))


def folder_graph(tree):
    """folder -> {folder that its files include: why}."""
    graph = {}
    for path, included in tree.includes():
        if included in tree.files and folder_of(path) != folder_of(included):
            graph.setdefault(folder_of(path), {}).setdefault(folder_of(included), f"{path} includes {included}")
    return graph


def check_folder_circles(tree):
    """Folders do not include each other, directly or through others."""
    return _describe_circles(folder_graph(tree))


def _describe_circles(graph):
    findings = []
    for circle in find_circles(graph):
        reasons = [graph[unit][other] for unit in circle for other in sorted(graph[unit]) if other in circle]
        findings.append(f"circle of {', '.join(circle)}:\n    " + "\n    ".join(reasons))
    return findings
