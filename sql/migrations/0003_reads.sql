-- What people and programs read: views for SQL and Grafana, and the JSON of the API.

create view run_steps as
select r.name as run, r.id as run_id, s.step, a.number as attempt, s.loss, s.grad_norm, s.learning_rate, s.tokens,
	s.documents, s.step_time_s, s.tokens_per_s, s.held_tokens, s.predicted_imbalance, s.imbalance, s.parts, s.recorded_at
from steps s join runs r on r.id = s.run_id join attempts a on a.id = s.attempt_id;

create view run_steps_superseded as
select r.name as run, r.id as run_id, s.step, a.number as attempt, s.loss, s.step_time_s, s.recorded_at, s.superseded_at
from steps_superseded s join runs r on r.id = s.run_id join attempts a on a.id = s.attempt_id;

create view run_attempts as
select r.name as run, r.id as run_id, a.id as attempt_id, a.number as attempt, a.uuid, a.state, a.reason, a.nodes,
	cardinality(a.nodes) as node_count, a.spares, a.world_size, a.tp, a.cp, a.pp, a.dp, a.device, a.dtype,
	a.resumed_step, a.checkpoint_path, a.exit_code, a.new_steps, span.first_step, span.last_step,
	a.created_at, a.started_at, a.ended_at
from attempts a join runs r on r.id = a.run_id
left join lateral (
	select min(step) as first_step, max(step) as last_step from (
		select step from steps where attempt_id = a.id
		union all select step from steps_superseded s where s.run_id = a.run_id and s.attempt_id = a.id) as done
) span on true;

create view run_faults as
select r.name as run, r.id as run_id, a.number as attempt, f.detected_at, f.kind, f.rank, f.node, f.peer_rank,
	f.collective, f.step, f.cost_s, f.detail, f.evidence, f.cause
from faults f join runs r on r.id = f.run_id join attempts a on a.id = f.attempt_id;

create view run_checkpoints as
select r.name as run, r.id as run_id, a.number as attempt, c.step, c.path, c.size_bytes, c.duration_s, c.recorded_at
from checkpoints c join runs r on r.id = c.run_id join attempts a on a.id = c.attempt_id;

create view run_events as
select r.name as run, r.id as run_id, a.number as attempt, e.kind, e.detail, e.recorded_at
from events e join runs r on r.id = e.run_id left join attempts a on a.id = e.attempt_id;

create view run_summary as
select r.name as run, r.id as run_id, r.job_id, r.job_name, r.user_name, r.cluster, r.state, r.reason,
	r.submitted_at, r.started_at, r.ended_at,
	coalesce(r.ended_at, now()) - r.started_at as elapsed,
	last.number as attempts, last.nodes, cardinality(last.nodes) as node_count, last.world_size,
	last.tp, last.cp, last.pp, last.dp,
	done.steps, r.train_iters, done.last_step, done.tokens, done.tokens_per_s, first.loss as first_loss,
	newest.loss as last_loss,
	(select count(*) from steps_superseded x where x.run_id = r.id) as steps_repeated,
	(select count(*) from faults f where f.run_id = r.id) as faults
from runs r
left join lateral (select * from attempts a where a.run_id = r.id order by number desc limit 1) last on true
left join lateral (
	select count(*) as steps, max(step) as last_step, coalesce(sum(tokens), 0) as tokens,
		sum(tokens) / nullif(sum(step_time_s), 0) as tokens_per_s
	from steps s where s.run_id = r.id) done on true
left join lateral (select loss from steps s where s.run_id = r.id order by step limit 1) first on true
left join lateral (select loss from steps s where s.run_id = r.id order by step desc limit 1) newest on true;

-- Which nodes broke runs, and how often.
create view node_faults as
select node, count(*) as faults, count(*) filter (where cause) as causes, count(distinct run_id) as runs,
	max(detected_at) as last_at
from faults where node is not null group by node;

-- ---- the API's JSON --------------------------------------------------------------------------------------------

create function wlb_time(t timestamptz) returns text language sql stable as $$
	select to_char(t at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
$$;

create function wlb_layout_json(tp integer, cp integer, pp integer, dp integer)
returns json language sql immutable as $$
	select case when tp is not null then json_build_object('tp', tp, 'cp', cp, 'pp', pp, 'dp', dp) end
$$;

create function wlb_rank_map_json(p_attempt bigint) returns json language sql stable as $$
	select coalesce(json_agg(json_build_object('rank', rank, 'node', node, 'local_rank', local_rank) order by rank), '[]')
	from rank_map where attempt_id = p_attempt
$$;

create function wlb_steps_json(p_run bigint, p_from bigint, p_limit bigint) returns json language sql stable as $$
	select coalesce(json_agg(json_build_object('step', step, 'attempt', attempt, 'loss', loss, 'grad_norm', grad_norm,
		'lr', learning_rate, 'tokens', tokens, 'documents', documents, 'step_time_s', step_time_s,
		'tokens_per_s', tokens_per_s, 'held_tokens', held_tokens,
		'predicted_imbalance', predicted_imbalance, 'imbalance', imbalance, 'parts', parts, 'time', extract(epoch from recorded_at)) order by step), '[]')
	from (select * from run_steps where run_id = p_run and step >= p_from order by step limit p_limit) as page
$$;

create function wlb_attempts_json(p_run bigint) returns json language sql stable as $$
	select coalesce(json_agg(json_build_object('attempt', attempt, 'attempt_id', uuid, 'state', state, 'reason', reason,
		'nodes', nodes, 'spares', spares, 'layout', wlb_layout_json(tp, cp, pp, dp),
		'rank_map', wlb_rank_map_json(attempt_id), 'world_size', world_size, 'device', device, 'dtype', dtype,
		'created_at', wlb_time(created_at), 'started_at', wlb_time(started_at), 'ended_at', wlb_time(ended_at),
		'first_step', first_step, 'last_step', last_step, 'resumed_step', resumed_step,
		'checkpoint', checkpoint_path, 'exit_code', exit_code) order by attempt), '[]')
	from run_attempts where run_id = p_run
$$;

create function wlb_faults_json(p_run bigint) returns json language sql stable as $$
	select coalesce(json_agg(json_build_object('attempt', attempt, 'time', wlb_time(detected_at), 'kind', kind,
		'rank', rank, 'node', node, 'peer_rank', peer_rank, 'collective', collective, 'step', step, 'cost_s', cost_s,
		'detail', detail, 'cause', cause) order by attempt, not cause, detected_at), '[]')
	from run_faults where run_id = p_run
$$;

create function wlb_checkpoints_json(p_run bigint) returns json language sql stable as $$
	select coalesce(json_agg(json_build_object('attempt', attempt, 'step', step, 'path', path, 'bytes', size_bytes,
		'duration_s', duration_s, 'time', wlb_time(recorded_at)) order by recorded_at, step), '[]')
	from run_checkpoints where run_id = p_run
$$;

create function wlb_events_json(p_run bigint) returns json language sql stable as $$
	select coalesce(json_agg(json_build_object('attempt', attempt, 'time', wlb_time(recorded_at), 'kind', kind,
		'detail', detail) order by recorded_at), '[]')
	from run_events where run_id = p_run
$$;

-- p_uid: null when the caller may read everything; then the owner is not asked for.
create function wlb_run_readable(p_name text, p_uid bigint) returns runs language plpgsql stable as $$
declare
	r runs := wlb_run_newest(p_name);
begin
	if p_uid is not null and r.uid <> p_uid then
		raise exception using errcode = 'WL403', message = format(
			'run %s belongs to another user, and private_data hides it; ask %s or an administrator', p_name, r.user_name);
	end if;
	return r;
end $$;

create function wlb_run_json(p_name text, p_uid bigint, p_steps boolean) returns json language plpgsql stable as $$
declare
	r runs := wlb_run_readable(p_name, p_uid);
	s run_summary;
	last_attempt bigint;
	first_step bigint;
begin
	select * into s from run_summary where run_id = r.id;
	select id into last_attempt from attempts where run_id = r.id order by number desc limit 1;
	select min(step) into first_step from steps where run_id = r.id;
	return (jsonb_build_object('run_id', r.name, 'id', r.id, 'job_id', r.job_id, 'job_name', r.job_name,
		'user', r.user_name, 'cluster', r.cluster, 'state', r.state, 'reason', r.reason,
		'restart_count', r.restart_count, 'submitted_at', wlb_time(r.submitted_at),
		'started_at', wlb_time(r.started_at), 'ended_at', wlb_time(r.ended_at), 'policy', r.policy, 'model', r.model,
		'seq_length', r.seq_length_tokens, 'global_batch_size', r.global_batch_size, 'train_iters', r.train_iters,
		'nodes', coalesce(s.nodes, '{}'), 'layout', wlb_layout_json(s.tp, s.cp, s.pp, s.dp),
		'rank_map', wlb_rank_map_json(last_attempt))
		|| jsonb_build_object('steps_done', s.steps, 'first_step', first_step, 'last_step', s.last_step,
		'first_loss', s.first_loss, 'last_loss', s.last_loss, 'steps_repeated', s.steps_repeated,
		'tokens', s.tokens, 'attempts', wlb_attempts_json(r.id), 'faults', wlb_faults_json(r.id),
		'checkpoints', wlb_checkpoints_json(r.id), 'events', wlb_events_json(r.id))
		|| case when p_steps then jsonb_build_object('steps', wlb_steps_json(r.id, 0, null)) else '{}' end)::json;
end $$;

create function wlb_run_steps_json(p_name text, p_uid bigint, p_from bigint, p_limit bigint)
returns json language sql stable as $$
	select json_build_object('steps', wlb_steps_json((wlb_run_readable(p_name, p_uid)).id, p_from, p_limit))
$$;

create function wlb_runs_json(p_uid bigint, p_user text, p_state text, p_limit bigint)
returns json language sql stable as $$
	select json_build_object('runs', coalesce(json_agg(json_build_object('run_id', s.run, 'id', s.run_id,
		'job_id', s.job_id, 'job_name', s.job_name, 'user', s.user_name, 'state', s.state, 'reason', s.reason,
		'submitted_at', wlb_time(s.submitted_at), 'started_at', wlb_time(s.started_at), 'ended_at', wlb_time(s.ended_at),
		'attempts', coalesce(s.attempts, 0), 'nodes', coalesce(s.nodes, '{}'), 'world_size', s.world_size,
		'layout', wlb_layout_json(s.tp, s.cp, s.pp, s.dp), 'steps_done', s.steps, 'last_step', s.last_step,
		'train_iters', s.train_iters, 'last_loss', s.last_loss, 'tokens_per_s', s.tokens_per_s, 'faults', s.faults)
		order by s.run_id desc), '[]'))
	from (select id from runs where (p_uid is null or uid = p_uid) and (p_user is null or user_name = p_user)
		and (p_state is null or state = p_state) order by id desc limit p_limit) as page
	join run_summary s on s.run_id = page.id
$$;
