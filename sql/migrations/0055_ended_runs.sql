-- A run that is over gets no further attempt: what a process reports of one that wlbd does not know is refused, and where records of
-- one arrive late, it has ended with its run.
--
-- Replaces: functions wlb_attempt_card (which says whether the run is over), wlb_attempt_end (an attempt whose end is recorded late as complete
-- has no reason why it was thought to be lost).

create or replace function wlb_attempt_card(p_attempt bigint) returns json language sql stable as $$
	select json_build_object('run_pk', r.id, 'run', r.name, 'job_id', r.job_id, 'uid', r.uid,
		'confirmed', r.confirmed, 'attempt_pk', a.id, 'attempt', a.number, 'attempt_id', a.uuid, 'state', a.state,
		'runs_on', wlb_attempt_runs_on(a), 'is_run_over', wlb_run_is_over(r.state),
		'exit_code', coalesce(a.exit_code, case a.state when 'complete' then 0 when 'ended' then 75 end),
		'reason', a.reason, 'slurm_step', a.slurm_step, 'node_reported', a.node_reported, 'nodes', to_json(a.nodes),
		'is_explained', exists (select from faults f where f.attempt_id = a.id and f.cause),
		'world_size', coalesce(a.world_size,
			cardinality(a.nodes) * (a.decision->>'tasks_per_node')::integer),
		'layout', wlb_layout_json(a.tp, a.cp, a.pp, a.dp), 'on_fault', r.policy->>'on_fault',
		'min_nodes', coalesce((r.policy->>'min_nodes')::integer, 0), 'spares', cardinality(a.spares),
		'rank_nodes', (select json_agg(node order by rank) from rank_map where attempt_id = a.id
			having max(rank) = count(*) - 1))
	from attempts a join runs r on r.id = a.run_id where a.id = p_attempt
$$;

create or replace function wlb_attempt_end(p_attempt bigint, p_state text, p_exit_code integer, p_reason text, p_time timestamptz)
returns void language sql as $$
	select wlb_attempt_lock(p_attempt);
	update attempts set
		state = case when state in ('complete', 'failed') then state else p_state end,
		reason = case when p_state = 'complete' and state = 'lost' then p_reason
			when p_reason = '' or (reason <> '' and state in ('complete', 'failed')) then reason
			else p_reason end,
		told = case when p_reason = '' then told else p_reason end,
		exit_code = coalesce(p_exit_code, exit_code),
		ended_at = coalesce(ended_at, p_time)
	where id = p_attempt;
	select wlb_attempt_settle(p_attempt)
$$;

update attempts a set state = 'lost', ended_at = now(),
	reason = case when a.reason = '' then 'its run was over when its first record arrived' else a.reason end
from runs r where r.id = a.run_id and wlb_run_is_over(r.state) and a.state in ('starting', 'running');
