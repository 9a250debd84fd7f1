"""The queries of the Grafana dashboards and alert rules, as Grafana sends them, and what Grafana needs of their answers."""
import dataclasses
import json
import re

import harness

FOLDER = harness.ROOT / "dashboards/provisioning"
BOARDS = ("fleet", "run", "compare", "ranks", "nodes")  # of PostgreSQL; service is of Prometheus
DATASOURCE = {"type": "grafana-postgresql-datasource", "uid": "wlb"}
ROWS_MAX = 2000
NUMBERS = {"bigint", "integer", "smallint", "double precision", "real", "numeric"}
TEXTS = {"text", "name"}
TIME = "timestamp with time zone"
SEPARATOR = "\x1e"
# As Grafana has it: an argument ends at the first parenthesis that closes, and at each comma.
MACRO = re.compile(r"\$([_a-zA-Z0-9]+)\(([^\)]*)\)")
VARIABLE = re.compile(r"\$\{(\w+):sqlstring\}")
UNITS = (("_bytes", {"bytes"}), ("_percent", {"percent"}), ("ettr", {"percentunit"}), ("mfu", {"percentunit"}), ("gpu_h", {"h"}),
         ("_per_s", {"short"}), ("_s", {"s"}))


@dataclasses.dataclass
class Query:
    board: str
    title: str
    kind: str  # of the panel; annotation, variable or alert
    sql: str
    unit: str = ""
    is_long: bool = False
    units: dict = dataclasses.field(default_factory=dict)  # of columns whose names end as the regular expression says
    columns: list = dataclasses.field(default_factory=list)  # (name, type)
    rows: list = dataclasses.field(default_factory=list)
    error: str = ""


def expand(query, chosen, begin="2000-01-01T00:00:00Z", end="2100-01-01T00:00:00Z"):
    """The query with what Grafana replaces before it sends it: ${NAME:sqlstring}, and the macros of time. chosen: variable -> values; Grafana
    takes '' for a variable without a value, and for the choice of all."""
    macros = {"__timeFilter": lambda column: f"{column} BETWEEN '{begin}' AND '{end}'",
              "__timeFrom": lambda _: f"'{begin}'", "__timeTo": lambda _: f"'{end}'"}

    def quoted(found):
        return ",".join("'" + str(value).replace("'", "''") + "'" for value in chosen.get(found[1]) or [""])

    query = MACRO.sub(lambda found: macros[found[1]](found[2].split(",")[0].strip(" ")), query)
    rest = VARIABLE.sub("", query)
    assert "$" not in rest, f"a variable that is not quoted, or a macro that the test does not know: {query}"
    return VARIABLE.sub(quoted, query)


def board(name):
    return json.loads((FOLDER / "dashboards/wlb" / f"{name}.json").read_text(encoding="utf-8"))


def _panel_query(name, panel):
    target, = panel["targets"]
    assert panel["datasource"] == DATASOURCE == target["datasource"], panel["title"]
    assert target["format"] == ("time_series" if panel["type"] in ("timeseries", "heatmap") else "table"), panel["title"]
    config = panel["fieldConfig"]
    units = {override["matcher"]["options"].strip("/"): prop["value"] for override in config["overrides"]
             for prop in override["properties"] if prop["id"] == "unit"}
    is_long = any(step["id"] == "groupingToMatrix" for step in panel.get("transformations") or [])
    return Query(name, panel["title"], panel["type"], target["rawSql"], config["defaults"]["unit"], is_long, units)


def queries(name):
    """Every Query of a dashboard; each asks our data source."""
    made = board(name)
    found = [_panel_query(name, panel) for panel in made["panels"]]
    for variable in made["templating"]["list"]:
        if variable["type"] == "query":
            assert variable["datasource"] == DATASOURCE, variable["name"]
            found.append(Query(name, f"variable {variable['name']}", "variable", variable["query"]))
    for mark in made.get("annotations", {}).get("list", []):
        assert mark["datasource"] == DATASOURCE, mark["name"]
        found.append(Query(name, f"mark {mark['name']}", "annotation", mark["target"]["rawSql"]))
    return found


def alerts():
    """Those of the alert rules, each with its condition (type, number) in `unit`."""
    group, = json.loads((FOLDER / "alerting/wlb.json").read_text(encoding="utf-8"))["groups"]
    return [Query("alerts", rule["uid"], "alert", rule["data"][0]["model"]["rawSql"],
                  rule["data"][1]["model"]["conditions"][0]["evaluator"]) for rule in group["rules"]]


def ask(cluster, asked, role="", **variables):
    """Fills in the columns, rows and errors of the queries: all of them in one session, of the role. variables: as of expand()."""
    times = {key: variables.pop(key) for key in ("begin", "end") if key in variables}
    lines = []
    for query in asked:
        sql = expand(query.sql, variables, **times)
        lines += [f"\\echo '{SEPARATOR}'", f"{sql} \\gdesc", f"\\echo '{SEPARATOR}'", f"{sql};",
                  f"\\if :ERROR\n\\echo '{SEPARATOR}' :LAST_ERROR_MESSAGE\n\\else\n\\echo '{SEPARATOR}'\n\\endif"]
    script = cluster.work / "queries.sql"
    script.write_text("\n".join(lines) + "\n", encoding="utf-8")
    text = cluster.run("psql", "-X", "-q", "-A", "-t", "-F", "\x1f", "-R", "\x1d", "-f", script, env={"PGUSER": role} if role else None).stdout
    parts = text.split(SEPARATOR)[1:]
    assert len(parts) == 3 * len(asked), text
    for at, query in enumerate(asked):
        columns, rows, error = (part.strip("\n") for part in parts[3 * at:3 * at + 3])
        query.columns, query.rows = ([row.split("\x1f") for row in part.split("\x1d") if row] for part in (columns, rows))
        query.error = error.strip()
    return asked


def _shape(query):
    """What Grafana needs of the columns: a sentence for each that is not so."""
    names, types = [name for name, _ in query.columns], [kind for _, kind in query.columns]
    known = NUMBERS | TEXTS | {TIME, "boolean"}
    wrong = [f"column {name} is of type {kind}" for name, kind in query.columns if kind not in known]
    rest = types[1:]
    if query.kind in ("timeseries", "heatmap"):
        rest = types[2:] if names[1:2] == ["metric"] else rest
        is_right = names[0] == "time" and types[0] == TIME and rest and set(rest) <= NUMBERS
    elif query.is_long:
        is_right = names == ["x", "name", "value"] and types[1] in TEXTS and types[2] in NUMBERS and (query.kind != "trend" or types[0] in NUMBERS)
    elif query.kind == "trend":
        is_right = names[0] == "step" and set(types) <= NUMBERS and rest
    elif query.kind == "barchart":
        is_right = types[0] in TEXTS and rest and set(rest) <= NUMBERS
    elif query.kind == "stat":
        is_right = len(types) == 1 and types[0] in NUMBERS | TEXTS
    elif query.kind == "annotation":
        is_right = list(zip(names, types)) == [("time", TIME), ("text", "text"), ("tags", "text")]
    elif query.kind == "variable":
        is_right = names in (["__text", "__value"], names[:1])
    elif query.kind == "alert":
        is_right = sum(kind in NUMBERS for kind in types) == 1 and set(types) - NUMBERS <= TEXTS
    else:
        is_right = query.kind == "table"
    return wrong if is_right else [*wrong, f"columns {query.columns} are none for a panel of type {query.kind}"]


def _units(query):
    """Numbers have a unit: a column of a table by its name, the others that of the panel, which fits their names."""
    wrong = [] if query.unit else ["no unit"]
    for name, kind in query.columns:
        ending, units = next(((ending, units) for ending, units in UNITS if name.endswith(ending)), ("", None))
        if not units or kind not in NUMBERS:
            continue
        given = [query.unit, *(unit for pattern, unit in query.units.items() if re.search(pattern, name))][-1]  # of overrides the last counts
        if given not in units:
            wrong.append(f"column {name} has the unit {given}, not {units}")
    return wrong


def _order(query):
    """Lines are drawn from left to right."""
    if query.kind not in ("timeseries", "heatmap", "trend"):
        return []
    first = [row[0] if query.kind != "trend" else float(row[0]) for row in query.rows]
    return [] if first == sorted(first) else ["the rows are not in order"]


def problems(asked):
    """A line for each query that failed, or whose answer Grafana could not show."""
    found = []
    for query in asked:
        is_panel = query.kind not in ("annotation", "variable", "alert")
        wrong = [query.error] if query.error else _shape(query) + (_units(query) if is_panel else []) + _order(query)
        wrong += [f"{len(query.rows)} rows"] if len(query.rows) > ROWS_MAX else []
        found += [f"{query.board}, {query.title}: {problem}" for problem in wrong]
    return found


def check(cluster, run_id, role="", by="step"):
    """Asks every query about the run; returns the problems, and the queries by (dashboard, title). by: step or tokens, of compare."""
    asked = [query for name in BOARDS for query in queries(name)] + alerts()
    ask(cluster, asked, role, run=[run_id], runs=[run_id], x=[by])
    return problems(asked), {(query.board, query.title): query for query in asked}
