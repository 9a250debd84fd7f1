#!/usr/bin/env python3
"""Writes the dashboards and alert rules for Grafana from the rows beside this file, into ../provisioning.

    make.py [--check]

--check: writes nothing, and fails where a file is not what the rows make. Needs grafana-foundation-sdk (requirements.txt)."""
import difflib
import json
import pathlib
import sys

from grafana_foundation_sdk.builders import barchart, common, dashboard, heatmap, prometheus, stat, table, timeseries, trend
from grafana_foundation_sdk.cog import variants
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.common import (BigValueGraphMode, BigValueTextMode, GraphDrawStyle, LegendDisplayMode, ScaleDistribution,
                                                  StackingMode, TooltipDisplayMode, VisibilityMode)
from grafana_foundation_sdk.models.dashboard import (DashboardLinkType, DataSourceRef, DataTransformerConfig, DynamicConfigValue,
                                                     ValueMap, ValueMappingResult, VariableOption, VariableRefresh)

import alerts
import compare
import fleet
import nodes
import ranks
import run
import service

PROVISIONING = pathlib.Path(__file__).resolve().parents[1] / "provisioning"
BOARDS = (fleet.BOARD, run.BOARD, compare.BOARD, ranks.BOARD, nodes.BOARD, service.BOARD)
POSTGRESQL = DataSourceRef("grafana-postgresql-datasource", "wlb")
PROMETHEUS = DataSourceRef("prometheus", "wlb-metrics")
BUILDERS = {"stat": stat, "table": table, "timeseries": timeseries, "trend": trend, "barchart": barchart, "heatmap": heatmap}
# The unit of a column of a table is what its name ends with, as in the database.
UNITS = {"_s": "s", "_bytes": "bytes", "_percent": "percent", "ettr|share|mfu": "percentunit", "gpu_h": "h", "tokens_per_s": "short",
         "_at": "dateTimeAsIso"}
COLORS = {"complete": "green", "running": "blue", "starting": "blue", "restarting": "orange", "failed": "red", "out_of_nodes": "red",
          "cancelled": "gray", "confirmed": "red", "suspected": "orange", "over": "gray", "ok": "green"}
TO_RUN = [{"title": "Open this run", "url": "/d/wlb-run?var-run=${__data.fields.run_id}&${__url_time_range}"}]


class Sql(variants.Dataquery):
    """A query of Grafana's PostgreSQL data source, which the SDK does not have."""

    def __init__(self, text, form="table"):
        self.text, self.form = text, form

    def build(self):
        return self

    def to_json(self):
        return {"refId": "A", "datasource": POSTGRESQL, "format": self.form, "editorMode": "code", "rawQuery": True, "rawSql": self.text}


def columns(builder):
    """The units, colours and links of a table's columns, by their names."""
    for ending, unit in UNITS.items():
        builder.override_by_regexp(f"/({ending})$/", [DynamicConfigValue("unit", unit)])
    mapping = ValueMap({value: ValueMappingResult(color=color, index=at) for at, (value, color) in enumerate(COLORS.items())})
    builder.override_by_regexp("/^(state|verdict)$/", [DynamicConfigValue("custom.cellOptions", {"type": "color-text"}),
                                                       DynamicConfigValue("mappings", [mapping])])
    builder.override_by_name("run", [DynamicConfigValue("links", TO_RUN)])
    builder.override_by_name("run_id", [DynamicConfigValue("custom.hidden", True)])


def lines(builder, row):
    builder.legend(common.VizLegendOptions().show_legend(True).display_mode(LegendDisplayMode.LIST).placement("bottom"))
    builder.tooltip(common.VizTooltipOptions().mode(TooltipDisplayMode.MULTI))
    builder.line_width(1).show_points(VisibilityMode.NEVER)
    if row.is_log:
        builder.scale_distribution(common.ScaleDistributionConfig().type(ScaleDistribution.LOG).log(10))
    if row.is_stacked:
        builder.stacking(common.StackingConfig().mode(StackingMode.NORMAL).group("A")).fill_opacity(60)
    if row.points:
        builder.override_by_regexp(f"/^({row.points})$/", [
            DynamicConfigValue("custom.drawStyle", GraphDrawStyle.POINTS), DynamicConfigValue("custom.showPoints", "always"),
            DynamicConfigValue("custom.pointSize", 8)])


def matrix(builder):
    """Rows (x, name, value) become a column for each name. Runs have their points at steps of their own."""
    builder.with_transformation(DataTransformerConfig("groupingToMatrix", {
        "rowField": "x", "columnField": "name", "valueField": "value", "emptyValue": "null"}))
    builder.x_field("x\\name")


def shape(builder, row, is_prometheus):
    """What the kind of the panel needs."""
    if row.kind == "table":
        columns(builder)
    if row.kind == "stat":  # which shows numbers alone if it is not told otherwise; an answer of Prometheus has a column of times
        builder.reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]).fields("" if is_prometheus else "/.*/"))
        builder.graph_mode(BigValueGraphMode.NONE).text_mode(BigValueTextMode.NAME if row.legend else BigValueTextMode.VALUE)
    if row.kind in ("trend", "timeseries"):
        lines(builder, row)
    if row.kind == "trend":
        builder.x_field("step").span_nulls(True)
    if row.is_long:
        matrix(builder)
    if row.kind == "heatmap":
        builder.calculate(False).show_legend().color(heatmap.HeatmapColorOptions().mode("scheme").scheme("Oranges").steps(64))
        builder.cell_values(heatmap.CellValues().unit(row.unit)).cell_gap(1)
    if row.kind == "barchart":
        builder.min(0)


def target(row, board):
    if board.is_prometheus:
        return prometheus.Dataquery().ref_id("A").datasource(PROMETHEUS).expr(row.query).legend_format(row.legend)
    return Sql(row.query, "time_series" if row.kind in ("timeseries", "heatmap") else "table")


def panel(row, board, number):
    builder = BUILDERS[row.kind].Panel().id(number).title(row.title).description(row.says).unit(row.unit)
    builder.span(row.width).height(row.height).datasource(PROMETHEUS if board.is_prometheus else POSTGRESQL)
    builder.with_target(target(row, board))
    shape(builder, row, board.is_prometheus)
    return builder


def variable(row):
    if not row.query:
        first = row.values.split(",")[0]
        return dashboard.CustomVariable(row.name).label(row.label).values(row.values).current(VariableOption(text=first, value=first))
    builder = dashboard.QueryVariable(row.name).label(row.label).datasource(POSTGRESQL).query(row.query)
    builder.refresh(VariableRefresh.ON_TIME_RANGE_CHANGED).multi(row.is_multi).include_all(row.has_all)
    return builder.all_value("''").current(VariableOption(text=["All"], value=["$__all"])) if row.has_all else builder


def mark(row):
    builder = dashboard.AnnotationQuery().name(row.name).datasource(POSTGRESQL).enable(True).icon_color(row.color)
    return builder.target(Sql(row.query))


def made(board):
    builder = dashboard.Dashboard(board.title).uid(board.uid).description(board.says).tags(["wlb"]).editable()
    builder.refresh("1m").time("now-7d", "now").timezone("browser")
    builder.link(dashboard.DashboardLink("WLB").type(DashboardLinkType.DASHBOARDS).tags(["wlb"]).keep_time(True))
    for row in board.variables:
        builder.with_variable(variable(row))
    for row in board.marks:
        builder.annotation(mark(row))
    for number, row in enumerate(board.panels, 1):
        builder.with_panel(panel(row, board, number))
    return builder.build()


def files():
    """path -> text"""
    found = {PROVISIONING / "dashboards/wlb" / f"{board.uid.removeprefix('wlb-')}.json": made(board) for board in BOARDS}
    found[PROVISIONING / "alerting/wlb.json"] = alerts.made()
    return {path: json.dumps(what, cls=JSONEncoder, indent=1) + "\n" for path, what in found.items()}


def main():
    is_check = sys.argv[1:] == ["--check"]
    if sys.argv[1:] and not is_check:
        sys.exit(__doc__)
    stale = []
    for path, text in files().items():
        old = path.read_text(encoding="utf-8") if path.exists() else ""
        if is_check:
            stale += difflib.unified_diff(old.splitlines(), text.splitlines(), str(path), "as the rows make it", lineterm="", n=1)
        elif old != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    if stale:
        sys.exit("\n".join([*stale[:60], "run dashboards/source/make.py"]))


if __name__ == "__main__":
    main()
