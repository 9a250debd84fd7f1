"""Service: wlbd, by what its /metrics say."""
from panels import Dashboard, Panel


def rate(title, metric, unit, **more):
    return Panel(title, "timeseries", f"rate({metric}[$__rate_interval])", unit, **more)


def increase(metric, what):
    return f'label_replace(sum(increase({metric}[$__rate_interval])), "what", "{what}", "", "")'


BOARD = Dashboard(
    "wlb-service", "WLB service", "wlbd and its database, from /metrics.", is_prometheus=True,
    panels=(
        Panel("wlbd answers", "stat", 'min(up{job="wlbd"})', "bool", 4, 4),
        Panel("Database answers and stores", "stat", "min(wlbd_database_up)", "bool_yes_no", 4, 4),
        Panel("Findings that wait", "stat", "sum(wlbd_statements_waiting)", "short", 4, 4, "For the database; above 0 for minutes is a "
            "fault."),
        Panel("Findings set aside", "stat", "sum(increase(wlbd_statements_set_aside_total[$__range]))", "short", 4, 4,
              "That the database did not store; wlbd's log names each."),
        Panel("Attempts", "stat", "sum(wlbd_attempts)", "short", 4, 4, "In wlbd's memory."),
        Panel("Version", "stat", "wlbd_build_info", "none", 4, 4, legend="{{version}}"),
        rate("Requests by status", "wlbd_requests_total", "reqps", legend="{{status}}", is_stacked=True),
        Panel("Time of a request", "timeseries", "sum(rate(wlbd_request_seconds_total[$__rate_interval])) / "
              "sum(rate(wlbd_requests_total[$__rate_interval]))", "s", says="In the mean.", legend="mean"),
        rate("Reports of nodes and launchers", "wlbd_reports_total", "reqps", legend="reports"),
        rate("Records stored", "wlbd_records_stored_total", "wps", legend="records"),
        Panel("Processes that report", "timeseries", "sum(wlbd_reporters)", "short", legend="reporters"),
        Panel("Losses of the database", "timeseries", "sum(increase(wlbd_database_losses_total[$__rate_interval]))", "short",
              legend="connections"),
        rate("Steps of ranks", "wlbd_rank_steps_total", "cps", legend="reported"),
        rate("Steps of ranks that were not reported", "wlbd_rank_steps_lost_total", "cps", legend="lost"),
        Panel("Faults found", "timeseries", "sum by (kind) (increase(wlbd_faults_total[$__rate_interval]))", "short", legend="{{kind}}",
              is_stacked=True),
        Panel("Attempts started, and ended for an eviction", "timeseries", f"{increase('wlbd_attempts_started_total', 'started')} or "
              f"{increase('wlbd_evictions_total', 'ended')}", "short", legend="{{what}}"),
        Panel("Stacks gathered", "timeseries", "sum(increase(wlbd_stack_gatherings_total[$__rate_interval]))", "short",
              legend="gatherings"),
        Panel("Stacks stored", "timeseries", "sum(increase(wlbd_stack_reports_total[$__rate_interval]))", "short", legend="nodes"),
        Panel("Steps of runs", "timeseries", "topk(20, wlbd_run_step)", "none", 24, legend="{{run}}, attempt {{attempt}}")))
