-- Each attempt that has ended and is not complete says why, also where nothing that could tell has reported; the attempt of a requeued
-- job that follows a complete one says why it began; and a run says which steps were reported and are not recorded.
--
-- Replaces: view run_attempts (whose reason is never empty where one is due), functions wlb_attempt_create (which adds the event
-- begun_again), wlb_run_json and wlb_runs_json (which have the steps that are missing).

-- As it is shown. What is stored stays empty until something that knows the reason tells it.
create function wlb_attempt_reason(p_state text, p_reason text, p_exit_code integer) returns text language sql immutable as $$
	select case
		when p_reason <> '' or p_state not in ('failed', 'ended', 'lost') then p_reason
		when p_state = 'ended' and p_exit_code in (0, 85) then 'it saved and stopped as it was asked to'
		when p_state = 'ended' then 'it was ended by order'
		when p_exit_code is not null then format('it ended with exit code %s', p_exit_code)
		else 'its end was not reported' end
$$;

create or replace view run_attempts as
select r.name as run, r.id as run_id, a.id as attempt_id, a.number as attempt, a.uuid, a.state, wlb_attempt_reason(a.state, a.reason, a.exit_code) as reason, a.nodes,
	a.node_count, a.spares, a.world_size, a.tp, a.cp, a.pp, a.dp, a.device, a.dtype,
	a.resumed_step, a.checkpoint_path, a.exit_code, a.new_steps,
	least((select min(step) from steps s where s.attempt_id = a.id),
		(select min(step) from steps_superseded s where s.attempt_id = a.id)) as first_step,
	greatest((select max(step) from steps s where s.attempt_id = a.id),
		(select max(step) from steps_superseded s where s.attempt_id = a.id)) as last_step,
	a.created_at, a.started_at, a.ended_at, a.plan, a.memory_bytes, a.gpus, a.nodes_bytes
from attempts a join runs r on r.id = a.run_id;

-- Notes why an attempt follows a complete one, once.
create function wlb_attempt_begun_again(a attempts) returns void language sql as $$
	select wlb_event_add(a.run_id, a.id, 'begun_again', format('job %s was requeued after attempt %s was complete: its script '
		'began again, and came to this run', r.job_id, a.number - 1), now())
	from runs r where r.id = a.run_id
		and exists (select from attempts where run_id = a.run_id and number = a.number - 1 and state = 'complete')
		and not exists (select from events where attempt_id = a.id and kind = 'begun_again')
$$;

-- p_is_late: the run is over; its attempt has ended.
drop function wlb_attempt_create(bigint, uuid);
create function wlb_attempt_create(p_run bigint, p_uuid uuid, p_is_late boolean default false) returns attempts language plpgsql as $$
declare
	r runs;
	a attempts;
	newest integer;
	attempts_most constant integer := 10000;
begin
	select * into r from runs where id = p_run for no key update;
	select coalesce(max(number), 0) into newest from attempts where run_id = p_run;
	if newest >= attempts_most then
		raise exception using errcode = 'WL409', message = format(
			'run %s: has %s attempts, and can have %s; begin another run with a new `wlb run`', r.name, newest, attempts_most);
	end if;
	if p_is_late then
		insert into attempts (run_id, number, uuid, state, reason, ended_at)
		values (p_run, newest + 1, p_uuid, 'lost', 'its run was over when its first record arrived', now()) returning * into a;
		return a;
	end if;
	-- An attempt that begins says that the run is not over, unless its launcher said so.
	if wlb_run_is_over(r.state) and r.ended_by is distinct from 'launcher' then
		perform wlb_open_runs_check(r.job_id, r.uid, r.user_name);
	end if;
	insert into attempts (run_id, number, uuid) values (p_run, newest + 1, p_uuid) returning * into a;
	update runs set state = case when a.number = 1 then 'starting' else 'restarting' end, reason = '',
		ended_by = null, ended_at = null
	where id = p_run and ended_by is distinct from 'launcher';
	if r.restart_count > 0 then
		perform wlb_attempt_begun_again(a);
	end if;
	return a;
end $$;

-- The highest step that a node had reported when the attempt ended.
alter table attempts add column reported_step bigint;

create function wlb_attempt_reported(p_attempt bigint, p_step bigint) returns void language sql as $$
	update attempts set reported_step = p_step where id = p_attempt and coalesce(reported_step, 0) < p_step
$$;

-- Steps of the newest 16 attempts that were reported and are not recorded, where rank 0 records steps: its records are not delivered
-- yet, or it ended before it had written them.
create function wlb_steps_missing(p_run bigint)
returns table (attempt integer, first_step bigint, last_step bigint, node text) language sql stable rows 1 as $$
	select a.number, recorded.step + 1, a.reported_step, (select m.node from rank_map m where m.attempt_id = a.id and m.rank = 0)
	from (select * from attempts where run_id = p_run and world_size is not null order by number desc limit 16) as a
	cross join lateral (select greatest(coalesce(a.resumed_step, 0),
		(select max(step) from steps where attempt_id = a.id),
		(select max(step) from steps_superseded where attempt_id = a.id)) as step) as recorded
	where a.reported_step > recorded.step
$$;

create function wlb_steps_missing_json(p_run bigint) returns json language sql stable as $$
	select coalesce(json_agg(json_build_object('attempt', attempt, 'first_step', first_step, 'last_step', last_step, 'node', node)
		order by attempt), '[]') from wlb_steps_missing(p_run)
$$;

create or replace function wlb_run_json(p_name text, p_uid bigint, p_steps boolean, p_asker bigint default null)
returns json language plpgsql stable as $$
declare
	r runs := wlb_run_readable(p_name, p_uid, p_asker);
	last attempts;
	story json;
begin
	select * into last from attempts where run_id = r.id order by number desc limit 1;
	story := json_build_object('run_id', r.name, 'alias', r.alias, 'id', r.id, 'job_id', r.job_id, 'job_name', r.job_name,
		'user', r.user_name, 'cluster', r.cluster, 'state', r.state, 'reason', r.reason,
		'restart_count', r.restart_count, 'submitted_at', wlb_time(r.submitted_at),
		'started_at', wlb_time(r.started_at), 'ended_at', wlb_time(r.ended_at),
		'policy', wlb_plain_within(r.policy, 65536), 'model', wlb_plain_within(r.model, 65536),
		'seq_length', r.seq_length_tokens, 'global_batch_size', r.global_batch_size, 'train_iters', r.train_iters,
		'nodes', coalesce(last.nodes, '{}'), 'layout', wlb_layout_json(last.tp, last.cp, last.pp, last.dp),
		'rank_map', wlb_rank_map_json(last.id),
		'steps_done', r.steps, 'first_step', r.first_step, 'last_step', r.last_step,
		'first_loss', wlb_real(r.first_loss), 'last_loss', wlb_real(r.last_loss), 'steps_repeated', r.steps_repeated,
		'steps_missing', wlb_steps_missing_json(r.id),
		'tokens', wlb_whole(r.tokens), 'attempts', wlb_attempts_json(r.id), 'faults', wlb_faults_json(r.id),
		'verdicts', wlb_verdicts_json(r.id),
		'checkpoints', wlb_checkpoints_json(r.id), 'events', wlb_events_json(r.id),
		'left_out', wlb_left_out_json(r),
		'dropped', json_build_object('events', r.dropped_events, 'faults', r.dropped_faults,
			'checkpoints', r.dropped_checkpoints, 'evidence', r.dropped_evidence,
			'verdicts', r.dropped_verdicts));
	if p_steps then
		select json_object_agg(key, value) into story from (
			select key, value from json_each(story)
			union all select 'steps', wlb_steps_newest(r.id)) as fields;
	end if;
	return story;
end $$;

create or replace function wlb_runs_json(p_uid bigint, p_user text, p_state text, p_limit bigint)
returns json language plpgsql stable set plan_cache_mode to force_custom_plan as $$
begin
	return (with page as (
		select id, alias from runs where (p_uid is null or uid = p_uid) and (p_user is null or user_name = p_user)
			and (p_state is null or state = p_state) order by id desc limit least(p_limit, 10000)
	), listed as (
		select s.*, page.alias, sum(node_count) over newer as names, sum(s.nodes_bytes) over newer as names_bytes
		from page join run_summary s on s.run_id = page.id window newer as (order by s.run_id desc)
	), told as (
		select s.run_id, json_build_object('run_id', s.run, 'alias', s.alias, 'id', s.run_id,
			'job_id', s.job_id, 'job_name', s.job_name, 'user', s.user_name, 'state', s.state, 'reason', s.reason,
			'submitted_at', wlb_time(s.submitted_at), 'started_at', wlb_time(s.started_at), 'ended_at', wlb_time(s.ended_at),
			'attempts', coalesce(s.attempts, 0),
			'nodes', case when s.names <= 1000000 and s.names_bytes <= 16 << 20 then coalesce(s.nodes, '{}') else '{}' end,
			'node_count', coalesce(s.node_count, 0), 'world_size', s.world_size,
			'layout', wlb_layout_json(s.tp, s.cp, s.pp, s.dp), 'steps_done', s.steps, 'last_step', s.last_step,
			'train_iters', s.train_iters, 'last_loss', wlb_real(s.last_loss), 'tokens_per_s', s.tokens_per_s,
			'faults', s.faults,
			'steps_missing', (select coalesce(sum(m.last_step - m.first_step + 1), 0) from wlb_steps_missing(s.run_id) m)) as entry
		from listed s
	), sized as (
		select run_id, entry, sum(octet_length(entry::text)) over (order by run_id desc) as bytes from told
	)
	select json_build_object('runs', coalesce(json_agg(entry order by run_id desc) filter (where bytes <= 24 << 20), '[]'),
		'left_out', count(*) filter (where bytes > 24 << 20)) from sized);
end $$;
