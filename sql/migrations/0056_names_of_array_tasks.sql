-- Runs of array tasks and of components of heterogeneous jobs are found by the names that Slurm shows: 15_2, 15+1.
--
-- Replaces: functions wlb_run_meant (which finds them), wlb_run_found (which says on which component runs are), wlb_run_json and wlb_runs_json (which say them), wlb_attempt_ensure (which
-- notes it for a run that it makes).

-- The run's name with the job as Slurm shows it in place of its id, "15_2.2"; null: as its name is.
alter table runs add column alias text;
create index on runs (alias, id) where alias is not null;

-- p_job: the job as Slurm shows it; '' where that is its id. Ids restart when a controller's state is deleted: the newest run is meant.
create function wlb_run_alias_note(p_run bigint, p_job text) returns void language sql as $$
	update runs set alias = p_job || substr(name, length(job_id::text) + 1)
	where id = p_run and p_job <> '' and alias is distinct from p_job || substr(name, length(job_id::text) + 1)
$$;

create or replace function wlb_run_meant(p_name text, p_uid bigint, p_admin boolean) returns runs language sql stable as $$
	select * from runs where (name = p_name or alias = p_name) and (confirmed or uid = p_uid or p_admin)
	order by (confirmed or uid is not distinct from p_uid) desc, id desc limit 1
$$;

create or replace function wlb_run_found(p_name text, p_uid bigint, p_admin boolean) returns runs language plpgsql stable as $$
declare
	r runs := wlb_run_meant(p_name, p_uid, p_admin);
	leader text := split_part(p_name, '+', 1);
begin
	if r.id is null and leader <> p_name and (wlb_run_meant(leader, p_uid, p_admin)).id is not null then
		raise exception using errcode = 'WL404', message = format(
			'no run %s: the runs of heterogeneous job %s are on its component 0; see run %s', p_name, leader, leader);
	elsif r.id is null then
		raise exception using errcode = 'WL404', message = format('no run %s; wlb runs lists them', p_name);
	end if;
	return r;
end $$;

drop function wlb_attempt_ensure(text, uuid, bigint, bigint, text, text, text, timestamptz, integer, boolean, boolean, boolean);
create function wlb_attempt_ensure(p_name text, p_uuid uuid, p_job_id bigint, p_uid bigint, p_user text, p_cluster text,
	p_job_name text, p_submitted timestamptz, p_restart_count integer, p_is_queued boolean,
	p_is_job_over boolean default false, p_is_report boolean default false, p_job text default '')
returns json language plpgsql as $$
declare
	r runs;
	known runs;
	a attempts;
	is_late boolean;
begin
	select * into a from attempts where uuid = p_uuid;
	if a.id is not null then
		return wlb_attempt_card(a.id);
	end if;
	select * into r from runs where name = p_name and (uid = p_uid or (confirmed and p_submitted is not null))
	order by id desc limit 1;
	if r.id is null and p_is_report and p_is_job_over and p_submitted is not null then
		raise exception using errcode = 'WL409', message = format('job %s has ended, and run %s was not announced', p_job_id, p_name);
	end if;
	if r.id is null then
		select * into known from runs where job_id = p_job_id and uid = p_uid order by id desc limit 1;
	end if;
	if r.id is null or wlb_job_is_another(r, p_uid, p_submitted, p_restart_count) then
		r := wlb_run_create(p_job_id,
			case when p_name ~ '\.[0-9]{1,6}$' then substring(p_name from '\.([0-9]+)$')::integer else 1 end,
			p_uid, p_user, p_cluster, p_job_name,
			case when known.id is null or wlb_job_is_another(known, p_uid, p_submitted, p_restart_count) then p_submitted
				else coalesce(known.submitted_at, p_submitted) end,
			p_restart_count, '{}');
	elsif p_submitted is not null then
		perform wlb_run_confirm(r.id, p_submitted, p_restart_count, p_job_name, p_cluster);
		if p_restart_count > r.restart_count and r.ended_by is distinct from 'launcher' and not p_is_queued then
			perform wlb_earlier_attempts_end(r.id, wlb_run_last_sign(r.id));
			update runs set restart_count = p_restart_count where id = r.id and restart_count < p_restart_count;
		end if;
	end if;
	-- A launcher of a later start of the job may have begun it while wlbd was away.
	is_late := wlb_run_is_over(r.state) and (p_is_job_over or (coalesce(r.ended_by = 'launcher', false)
		and not coalesce(p_submitted is not null and p_restart_count > coalesce(r.launcher_start, r.restart_count), false)));
	if is_late and p_is_report then
		raise exception using errcode = 'WL409', message = format('run %s has ended (%s), and gets no further attempt', r.name, r.state);
	end if;
	perform wlb_run_alias_note(r.id, p_job);
	a := wlb_attempt_create(r.id, p_uuid, is_late);
	update runs set is_not_reached = false where id = r.id and is_not_reached;
	-- Beyond this number of attempts without an end, the oldest are ended: the number of open attempts bounds memory.
	update attempts set state = 'lost', reason = format('attempt %s has begun', a.number), ended_at = now()
	where run_id = r.id and number <= a.number - 64 and state in ('starting', 'running');
	return wlb_attempt_card(a.id);
end $$;

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
			'faults', s.faults) as entry
		from listed s
	), sized as (
		select run_id, entry, sum(octet_length(entry::text)) over (order by run_id desc) as bytes from told
	)
	select json_build_object('runs', coalesce(json_agg(entry order by run_id desc) filter (where bytes <= 24 << 20), '[]'),
		'left_out', count(*) filter (where bytes > 24 << 20)) from sized);
end $$;
