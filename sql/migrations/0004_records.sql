-- What was recorded before numbers had bounds may hold any value of its column's type, and one user's row must not make
-- a list fail for all: no view and no function below can fail on what the tables accept, and none returns a number that
-- a reader of JSON refuses.
--
-- Replaces: view run_summary; functions wlb_steps_json, wlb_faults_json, wlb_checkpoints_json, wlb_run_json,
-- wlb_runs_json.

-- ---- numbers that every reader takes ----------------------------------------------------------------------------

-- Null for NaN and the infinities, which JSON does not have.
create function wlb_real(x double precision) returns double precision language sql immutable as $$
	select case when x > '-Infinity' and x < 'Infinity' then x end
$$;

-- The nearest number that fits a bigint; null for NaN.
create function wlb_whole(x numeric) returns bigint language sql immutable as $$
	select case when x <> 'NaN' then greatest(least(x, 9223372036854775807), -9223372036854775808)::bigint end
$$;

-- Null where there is no time to divide by, and at most 1e15.
create function wlb_rate(amount numeric, seconds numeric) returns double precision language sql immutable as $$
	select case when amount >= 0 and seconds > 0 and amount < 'Infinity' and seconds < 'Infinity'
		then least(amount / seconds, 1e15)::float8 end
$$;

-- A duration as a number to sum: 0 where it is not one.
create function wlb_seconds(x double precision) returns numeric language sql immutable as $$
	select case when x >= 0 and x <= 1e7 then x::numeric else 0 end
$$;

-- jsonb prints a number digit by digit: 1e300 is an integer of 301 digits there, which readers refuse. Such numbers
-- become null. Nearly every value has no long row of digits, and is returned as it is.
create function wlb_plain(j jsonb) returns jsonb language plpgsql immutable as $$
begin
	if j::text !~ '[0-9]{18}' then
		return j;
	end if;
	return case jsonb_typeof(j)
		when 'object' then (select jsonb_object_agg(key, wlb_plain(value)) from jsonb_each(j))
		when 'array' then (select jsonb_agg(wlb_plain(value) order by place)
			from jsonb_array_elements(j) with ordinality as entries (value, place))
		when 'number' then case when abs((j #>> '{}')::numeric) <= 1e18 then j else 'null' end
		else j
	end;
end $$;

-- The same; null where its text is longer than `most_bytes`.
create function wlb_plain_within(j jsonb, most_bytes integer) returns jsonb language sql immutable as $$
	select case when octet_length(j::text) <= most_bytes then wlb_plain(j) end
$$;

-- One of a step's parts, for charts; null where it is no number that a double holds.
create function wlb_part(parts jsonb, name text) returns double precision language sql immutable as $$
	select case when jsonb_typeof(parts->name) = 'number' and abs((parts->>name)::numeric) <= 1e300
		then (parts->>name)::float8 end
$$;

-- Null where either end is missing or infinite, or lies outside the years that a difference can span.
create function wlb_span(began timestamptz, ended timestamptz) returns interval language sql immutable as $$
	select case when began > '0001-01-01' and ended > '0001-01-01' and began < '9999-12-31' and ended < '9999-12-31'
		then ended - began end
$$;

-- ---- views ------------------------------------------------------------------------------------------------------

create or replace view run_summary as
select r.name as run, r.id as run_id, r.job_id, r.job_name, r.user_name, r.cluster, r.state, r.reason,
	r.submitted_at, r.started_at, r.ended_at,
	wlb_span(r.started_at, coalesce(r.ended_at, now())) as elapsed,
	last.number as attempts, last.nodes, cardinality(last.nodes) as node_count, last.world_size,
	last.tp, last.cp, last.pp, last.dp,
	done.steps, r.train_iters, done.last_step, done.tokens, wlb_rate(done.tokens, done.seconds) as tokens_per_s,
	first.loss as first_loss, newest.loss as last_loss,
	(select count(*) from steps_superseded x where x.run_id = r.id) as steps_repeated,
	(select count(*) from faults f where f.run_id = r.id) as faults
from runs r
left join lateral (select * from attempts a where a.run_id = r.id order by number desc limit 1) last on true
left join lateral (
	select count(*) as steps, max(step) as last_step, coalesce(sum(tokens), 0) as tokens,
		sum(wlb_seconds(step_time_s)) as seconds
	from steps s where s.run_id = r.id) done on true
left join lateral (select loss from steps s where s.run_id = r.id order by step limit 1) first on true
left join lateral (select loss from steps s where s.run_id = r.id order by step desc limit 1) newest on true;

-- ---- the API's JSON ---------------------------------------------------------------------------------------------

create or replace function wlb_steps_json(p_run bigint, p_from bigint, p_limit bigint)
returns json language sql stable as $$
	select coalesce(json_agg(json_build_object('step', step, 'attempt', attempt, 'loss', wlb_real(loss),
		'grad_norm', wlb_real(grad_norm), 'lr', wlb_real(learning_rate), 'tokens', tokens, 'documents', documents,
		'step_time_s', wlb_real(step_time_s), 'tokens_per_s', wlb_real(tokens_per_s), 'held_tokens', held_tokens,
		'predicted_imbalance', wlb_real(predicted_imbalance), 'imbalance', wlb_real(imbalance),
		'parts', wlb_plain_within(parts, 16384), 'time', wlb_real(extract(epoch from recorded_at)::float8))
		order by step), '[]')
	from (select * from run_steps where run_id = p_run and step >= p_from order by step limit p_limit) as page
$$;

create or replace function wlb_faults_json(p_run bigint) returns json language sql stable as $$
	select coalesce(json_agg(json_build_object('attempt', attempt, 'time', wlb_time(detected_at), 'kind', kind,
		'rank', rank, 'node', node, 'peer_rank', peer_rank, 'collective', collective, 'step', step,
		'cost_s', wlb_real(cost_s), 'detail', detail, 'cause', cause) order by attempt, not cause, detected_at), '[]')
	from run_faults where run_id = p_run
$$;

create or replace function wlb_checkpoints_json(p_run bigint) returns json language sql stable as $$
	select coalesce(json_agg(json_build_object('attempt', attempt, 'step', step, 'path', path, 'bytes', size_bytes,
		'duration_s', wlb_real(duration_s), 'time', wlb_time(recorded_at)) order by recorded_at, step), '[]')
	from run_checkpoints where run_id = p_run
$$;

-- Not jsonb, which would print a loss of 1e100 as an integer of 101 digits.
create or replace function wlb_run_json(p_name text, p_uid bigint, p_steps boolean)
returns json language plpgsql stable as $$
declare
	r runs := wlb_run_readable(p_name, p_uid);
	s run_summary;
	last_attempt bigint;
	first_step bigint;
	story json;
begin
	select * into s from run_summary where run_id = r.id;
	select id into last_attempt from attempts where run_id = r.id order by number desc limit 1;
	select min(step) into first_step from steps where run_id = r.id;
	story := json_build_object('run_id', r.name, 'id', r.id, 'job_id', r.job_id, 'job_name', r.job_name,
		'user', r.user_name, 'cluster', r.cluster, 'state', r.state, 'reason', r.reason,
		'restart_count', r.restart_count, 'submitted_at', wlb_time(r.submitted_at),
		'started_at', wlb_time(r.started_at), 'ended_at', wlb_time(r.ended_at),
		'policy', wlb_plain_within(r.policy, 65536), 'model', wlb_plain_within(r.model, 65536),
		'seq_length', r.seq_length_tokens, 'global_batch_size', r.global_batch_size, 'train_iters', r.train_iters,
		'nodes', coalesce(s.nodes, '{}'), 'layout', wlb_layout_json(s.tp, s.cp, s.pp, s.dp),
		'rank_map', wlb_rank_map_json(last_attempt),
		'steps_done', s.steps, 'first_step', first_step, 'last_step', s.last_step,
		'first_loss', wlb_real(s.first_loss), 'last_loss', wlb_real(s.last_loss), 'steps_repeated', s.steps_repeated,
		'tokens', wlb_whole(s.tokens), 'attempts', wlb_attempts_json(r.id), 'faults', wlb_faults_json(r.id),
		'checkpoints', wlb_checkpoints_json(r.id), 'events', wlb_events_json(r.id));
	if p_steps then
		select json_object_agg(key, value) into story from (
			select key, value from json_each(story)
			union all select 'steps', wlb_steps_json(r.id, 0, null)) as fields;
	end if;
	return story;
end $$;

create or replace function wlb_runs_json(p_uid bigint, p_user text, p_state text, p_limit bigint)
returns json language sql stable as $$
	select json_build_object('runs', coalesce(json_agg(json_build_object('run_id', s.run, 'id', s.run_id,
		'job_id', s.job_id, 'job_name', s.job_name, 'user', s.user_name, 'state', s.state, 'reason', s.reason,
		'submitted_at', wlb_time(s.submitted_at), 'started_at', wlb_time(s.started_at), 'ended_at', wlb_time(s.ended_at),
		'attempts', coalesce(s.attempts, 0), 'nodes', coalesce(s.nodes, '{}'), 'world_size', s.world_size,
		'layout', wlb_layout_json(s.tp, s.cp, s.pp, s.dp), 'steps_done', s.steps, 'last_step', s.last_step,
		'train_iters', s.train_iters, 'last_loss', wlb_real(s.last_loss), 'tokens_per_s', s.tokens_per_s,
		'faults', s.faults) order by s.run_id desc), '[]'))
	from (select id from runs where (p_uid is null or uid = p_uid) and (p_user is null or user_name = p_user)
		and (p_state is null or state = p_state) order by id desc limit p_limit) as page
	join run_summary s on s.run_id = page.id
$$;
