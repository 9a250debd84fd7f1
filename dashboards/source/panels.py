"""The rows that dashboards are made of. A panel is a row; make.py makes Grafana's JSON of them."""
import dataclasses

# What Grafana puts in: ${...:sqlstring} is quoted, so a name of any characters is a text of SQL and no part of the statement.
RUN = "nullif(${run:sqlstring}, '')::bigint"
RUNS = "array(select nullif(x, '')::bigint from unnest(array[${runs:sqlstring}]) as x limit 8)"
WENT_ON = "coalesce(started_at, submitted_at, '-infinity') <= $__timeTo() and (ended_at is null or ended_at >= $__timeFrom())"
LAYOUT = "'tp=' || tp || ' cp=' || cp || ' pp=' || pp || ' dp=' || dp as layout"
# 48 parts of the dashboard's time.
PARTS = ("parts as (select began, began + width as ended, extract(epoch from width)::float8 as width_s from (select "
         "$__timeFrom()::timestamptz + n * width as began, width from generate_series(0, 47) as n, "
         "(select ($__timeTo()::timestamptz - $__timeFrom()::timestamptz) / 48 as width) as w) as p)")

RUN_LIST = "select run || '  ' || job_name || '  ' || state as __text, run_id as __value from run_summary order by run_id desc limit 500"


@dataclasses.dataclass(frozen=True)
class Panel:
    title: str
    kind: str  # stat, table, timeseries, trend, barchart or heatmap
    query: str  # SQL, or PromQL of the dashboard of the service
    unit: str = "short"
    width: int = 8  # of 24
    height: int = 8
    says: str = ""
    is_log: bool = False
    is_stacked: bool = False
    is_long: bool = False  # rows (x, name, value): a line, or a bar of each x, for each name
    points: str = ""  # a regular expression of columns that are points and no lines
    legend: str = ""  # of PromQL


@dataclasses.dataclass(frozen=True)
class Variable:
    name: str
    label: str
    query: str  # empty: `values` are the choices
    is_multi: bool = False
    has_all: bool = False  # all is chosen where nothing is; a query has '' for it
    values: str = ""


@dataclasses.dataclass(frozen=True)
class Mark:
    """An annotation of the panels whose axis is the time: rows (time, text, tags)."""
    name: str
    color: str
    query: str


@dataclasses.dataclass(frozen=True)
class Dashboard:
    uid: str
    title: str
    says: str
    panels: tuple
    variables: tuple = ()
    marks: tuple = ()
    is_prometheus: bool = False
