-- Verdicts from stacks; the collectives that were under way when a run stood still; whether crashes leave nodes out.
--
-- Replaces: wlb_verdict_json.

alter table verdicts drop constraint verdicts_kind_check;
alter table verdicts add constraint verdicts_kind_check check (kind in ('crash', 'hang', 'hang_in_communication', 'deadlock',
	'slow_compute', 'slow_node', 'slow_link', 'slow_nic', 'slow_loader', 'slow_storage', 'bad_values', 'stack_outliers'));

-- docs/api.md, `calls` of a verdict: of those that tell of a standstill.
alter table verdicts add column calls json not null default '[]';

-- The calls of a verdict that wlb_verdict_put has stored; those of an earlier state stay where v has none.
create function wlb_verdict_calls_put(p_attempt bigint, p_watcher bigint, v jsonb) returns void language sql as $$
	update verdicts set calls = (v->'calls')::json
	where attempt_id = p_attempt and watcher = p_watcher and number = (v->>'number')::bigint
		and jsonb_array_length(coalesce(v->'calls', '[]')) > 0
$$;

alter function wlb_verdict_json(verdicts, integer) rename to wlb_verdict_without_calls_json;

create function wlb_verdict_json(v verdicts, p_attempt integer) returns json language sql stable as $$
	select json_object_agg(key, value) from (
		select key, value from json_each(wlb_verdict_without_calls_json(v, p_attempt))
		union all select 'calls', v.calls) as fields
$$;

-- Of each rank of a gathering the thread that is likely to train: of the first ranks, 16 MiB at most.
create function wlb_stacks_of_trainers(p_attempt bigint, p_stacks_id bigint) returns json language sql stable as $$
	with found as (
		select rank, json_build_object('rank', rank, 'node', node, 'state', entry->'state',
			'threads', json_build_array(entry->'threads'->0)) as entry
		from stacks where attempt_id = p_attempt and stacks_id = p_stacks_id
	), sized as (
		select *, sum(octet_length(entry::text)) over (order by rank) as bytes from found
	)
	select json_build_object('layout', wlb_layout_json(a.tp, a.cp, a.pp, a.dp),
		'ranks', coalesce((select json_agg(entry order by rank) from sized where bytes <= 16 << 20), '[]'))
	from attempts a where a.id = p_attempt
$$;

-- What wlb_run_history returns, and what is done about the run's faults, as far as it is not as wlbd.conf says.
create function wlb_run_past(p_name text, p_uuid uuid, p_uid bigint, p_admin boolean) returns json language sql stable as $$
	with past as (
		select wlb_run_history(p_name, p_uuid, p_uid, p_admin) as fields
	)
	select json_object_agg(key, value) from (
		select key, value from past, json_each(past.fields)
		union all
		select 'on_fault', to_json(r.policy->>'on_fault')
		from past join runs r on r.id = (past.fields->>'run_pk')::bigint) as fields
$$;
