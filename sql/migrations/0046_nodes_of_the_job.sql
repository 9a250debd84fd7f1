-- What is held against a node rests on what Slurm says of the job: that the node was the job's when it was lost, and that it was
-- one of the attempt's when links are blamed.
--
-- Replaces: functions wlb_fault_found, wlb_run_past.

-- A user may report of a node for a job that does not exist, or that does not run.
update faults f set proof = proof - 'seen' from runs r
where r.id = f.run_id and f.kind = 'node_lost' and f.proof ? 'seen' and not r.confirmed;

-- Whether wlbd has let the attempt start on the node, as one of a run that Slurm knows.
create function wlb_attempt_has_node(p_attempt bigint, p_node text) returns boolean language sql stable as $$
	select exists (select from attempts a join runs r on r.id = a.run_id
		where a.id = p_attempt and a.launched and r.confirmed and p_node = any(wlb_attempt_given(a)))
$$;

-- The keys of faults.proof, in addition to those of 0016: job_unknown (Slurm has not said to wlbd, since its start, that the node is
-- the job's: the loss is evidence against the node only where the attempt was started on it). p_time is by wlbd's clock; one that is ahead of the database's would make a fault newer than the check
-- that follows it.
create or replace function wlb_fault_found(p_attempt bigint, p_kind text, p_rank integer, p_node text, p_step bigint,
	p_detail text, p_proof jsonb, p_time timestamptz)
returns void language sql as $$
	select wlb_fault_put(p_attempt, p_kind, p_rank, p_node, p_step, p_detail, null,
		case when p_kind = 'node_lost'
				and (not coalesce(p_proof ? 'job_unknown', false) or wlb_attempt_has_node(p_attempt, p_node))
			then coalesce(p_proof, '{}') || '{"seen":true}' else p_proof end, least(p_time, now()))
$$;

-- The nodes of the attempt whose fault has no node yet, an array of names; null: there is no such fault.
create function wlb_unplaced_nodes(p_run bigint) returns json language sql stable as $$
	select coalesce((a.decision->'nodes')::json, to_json(a.nodes))
	from faults f join attempts a on a.id = f.attempt_id where f.id = wlb_unplaced_fault(p_run)
$$;

-- p_previous: the attempt that the launcher which asks has had before; null: none.
create or replace function wlb_run_past(p_name text, p_uuid uuid, p_previous uuid, p_uid bigint, p_admin boolean) returns json
language sql stable as $$
	with past as (
		select wlb_run_history(p_name, p_uuid, p_previous, p_uid, p_admin) as fields
	)
	select json_object_agg(key, value) from (
		select key, value from past, json_each(past.fields)
		union all
		select 'on_fault', to_json(r.policy->>'on_fault')
		from past join runs r on r.id = (past.fields->>'run_pk')::bigint
		union all
		select 'unplaced', wlb_unplaced_nodes((past.fields->>'run_pk')::bigint) from past
		union all
		select 'avoided', wlb_nodes_avoided()
		union all
		select 'since_end_s', to_json((select greatest(extract(epoch from now() - max(ended_at)), 0) from attempts
			where run_id = (past.fields->>'run_pk')::bigint and ended_at is not null)::float8) from past
		union all
		-- Nodes that have passed a check before.
		select 'given_back', (select coalesce(json_object_agg(node, true), '{}') from (select distinct node
			from run_node_checks where run_id = (past.fields->>'run_pk')::bigint and healthy) as passed) from past) as fields
$$;
