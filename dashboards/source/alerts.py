"""Alert rules of Grafana over the database. A row of a query is an instance of the alert: its texts are labels, its number is compared."""
import dataclasses

from grafana_foundation_sdk.builders import alerting
from grafana_foundation_sdk.cog import variants
from grafana_foundation_sdk.models.alerting import RelativeTimeRange

# A run stalls that has recorded nothing for so many of its steps, and so long.
STALL_STEPS = 20
STALL_MIN_S = 600


@dataclasses.dataclass(frozen=True)
class Alert:
    uid: str
    title: str
    query: str
    above: float  # at which number it fires
    for_text: str  # how long before it does
    severity: str
    summary: str
    of_data_error: str = "Error"  # what the alert is where the database does not answer
    below: bool = False


ALERTS = (
    Alert("wlb-run-failed", "A run has failed", "select run, job_name, user_name, state, 1 as failed from run_summary where state in "
          "('failed', "
          "'out_of_nodes') and ended_at > now() - interval '1 hour' order by run_id desc limit 100", 0, "0s", "warning",
          "Run {{ $labels.run }} ({{ $labels.job_name }} of {{ $labels.user_name }}) is {{ $labels.state }}: wlb show {{ $labels.run }}"),
    Alert("wlb-node-lost", "A node is lost repeatedly", "select node, count(*) as losses from run_faults where kind = 'node_lost' and "
          "is_seen and "
          "detected_at > now() - interval '1 day' group by node order by losses desc limit 100", 1, "0s", "warning",
          "Node {{ $labels.node }} was lost {{ $values.A.Value }} times in a day: check it, wlb check-node"),
    Alert("wlb-run-stalls", "A run stalls", "select run, job_name, user_name, (idle_s / greatest(%d * step_s, %d))::float8 as stalled "
          "from (select "
          "r.run, r.job_name, r.user_name, extract(epoch from now() - greatest(a.started_at, newest.recorded_at, k.recorded_at)) as "
          "idle_s, "
          "coalesce(newest.step_s, 0) as step_s from run_summary r join run_attempts a on a.run_id = r.run_id and a.attempt = r.attempts "
          "left join lateral (select max(recorded_at) as recorded_at, avg(wlb_real(step_time_s)) as step_s from (select recorded_at, "
          "step_time_s from run_steps s where s.run_id = r.run_id order by s.run_id, step desc limit 20) as s) newest on true left join "
          "lateral "
          "(select max(recorded_at) as recorded_at from run_checkpoints c where c.run_id = r.run_id) k on true where r.state = 'running' "
          "and a.started_at is not null and r.last_step is not null order by r.run_id desc limit 500) as runs"
          % (STALL_STEPS, STALL_MIN_S), 1, "0s", "critical",
          f"Run {{{{ $labels.run }}}} of {{{{ $labels.user_name }}}} has recorded no step for {STALL_STEPS} of its steps and "
          f"{STALL_MIN_S // 60} minutes: wlb top {{{{ $labels.run }}}}"),
    Alert("wlb-ettr-low", "The ETTR of the fleet is low", "select coalesce(sum(effective_s) / nullif(sum(held_s), 0), 1)::float8 as "
          "ettr from "
          "(select t.effective_s, t.held_s from (select run_id from run_summary where started_at is not null and coalesce(ended_at, "
          "now()) > "
          "now() - interval '1 day' order by run_id desc limit 200) r join lateral (select * from run_ettr e where e.run_id = r.run_id) t "
          "on true where t.ettr is not null) as runs", 0.8, "1h", "warning",
          "Runs of the last day trained {{ $values.A.Value }} of the time that they held their nodes", below=True),
    Alert("wlb-verdict-open", "A verdict is open", "select v.run, v.kind, array_to_string(v.nodes, ' ') as nodes, max(coalesce("
          "wlb_real(v.cost_percent), 100)) as cost_percent from run_verdicts v join run_summary r on r.run_id = v.run_id where "
          "v.state = 'confirmed' and r.state = 'running' group by 1, 2, 3 limit 100", 5, "10m", "warning",
          "Run {{ $labels.run }}: {{ $labels.kind }} on {{ $labels.nodes }} costs {{ $values.A.Value }} %"),
    Alert("wlb-database-away", "The database does not answer", "select 0 as away", 0, "2m", "critical",
          "Grafana cannot query the database of wlbd", of_data_error="Alerting"))


class Model(variants.Dataquery):
    def __init__(self, data):
        self.data = data

    def build(self):
        return self

    def to_json(self):
        return self.data


def query(ref, source, model):
    span = RelativeTimeRange(3600, 0)
    return alerting.Query(ref).datasource_uid(source).relative_time_range(span).model(Model({"refId": ref, **model}))


def rule(row):
    """One query, and a threshold of its number. A file of rules has no place for what the API says of folder and group."""
    evaluator = {"type": "lt" if row.below else "gt", "params": [row.above]}
    builder = alerting.Rule(row.title).uid(row.uid).condition("B").for_val(row.for_text).no_data_state("OK")
    builder.exec_err_state(row.of_data_error).labels({"severity": row.severity, "service": "wlb"}).annotations({"summary": row.summary})
    builder.with_query(query("A", "wlb", {"format": "table", "editorMode": "code", "rawQuery": True, "rawSql": row.query}))
    builder.with_query(query("B", "__expr__", {"type": "threshold", "expression": "A", "conditions": [{"evaluator": evaluator}],
                                               "datasource": {"type": "__expr__", "uid": "__expr__"}}))
    return {key: value for key, value in builder.build().to_json().items() if key not in ("folderUID", "orgID", "ruleGroup")}


def made():
    group = {"orgId": 1, "name": "wlb", "folder": "WLB", "interval": "1m", "rules": [rule(row) for row in ALERTS]}
    return {"apiVersion": 1, "groups": [group]}
