-- Runs and their Slurm jobs: which runs wlbd has to judge, and how they end or wait for their job to start again.

create function wlb_run_is_over(p_state text) returns boolean language sql immutable as $$
	select p_state in ('complete', 'failed', 'out_of_nodes', 'cancelled')
$$;

-- A reason with the first occurrence of a text replaced. All occurrences would multiply the text: a client chooses both.
create function wlb_reason_with(p_reason text, p_old text, p_new text) returns text language sql immutable as $$
	select case when p_old <> '' and strpos(p_reason, p_old) > 0
		then overlay(p_reason placing p_new from strpos(p_reason, p_old) for length(p_old)) else p_reason end
$$;

-- The data for judging an open run by its Slurm job. `launched`: the newest attempt was started in this start of the job, as far
-- as is known; `end_reported`: the launcher has reported how it ended. `is_waiting`, `is_suspended`: it is recorded that the job is in the
-- queue, or suspended, now. `not_reached`: the script began again, and has not come to the run. `lost_lately`: nodes that the
-- newest attempt lost not long ago, as wlbd saw, of those that Slurm had named as the job's when it began; at most 64.
create function wlb_runs_open() returns json language sql stable as $$
	select coalesce(json_agg(json_build_object('run_pk', r.id, 'run', r.name, 'job_id', r.job_id, 'uid', r.uid,
		'restart_count', r.restart_count,
		'is_waiting', exists (select from queue_waits q where q.run_id = r.id and q.ended_at is null),
		'is_suspended', exists (select from suspensions s where s.run_id = r.id and s.ended_at is null),
		'min_nodes', coalesce((r.policy->>'min_nodes')::integer, 0),
		'total_nodes', coalesce(cardinality(given.nodes), 0),
		'node_names', given.nodes,
		'lost_before', (select coalesce(json_agg(distinct f.node), '[]')
			from attempts b join faults f on f.attempt_id = b.id
			where b.run_id = r.id and b.number < a.number and f.kind = 'node_lost' and f.proof ? 'seen'
				and f.node <> all (given.nodes)),
		'lost_lately', (select coalesce(json_agg(node), '[]') from (select distinct f.node from faults f
			where f.attempt_id = a.id and f.kind = 'node_lost' and f.proof ? 'seen'
				and f.detected_at > now() - interval '10 min' and wlb_attempt_has_node(a.id, f.node)
			order by f.node limit 64) lost),
		'resized_to', coalesce(a.resized_to, 0),
		'attempt_pk', a.id, 'launched', coalesce(a.launched and not r.is_not_reached, false),
		'end_reported', coalesce(a.launcher_told and not r.is_not_reached, false),
		'launcher_lost', exists (select from faults f join fault_kinds k on k.name = f.kind
			where f.attempt_id = a.id and not r.is_not_reached and k.is_launcher),
		'lost_nodes', (select count(distinct node) from faults f
			where f.attempt_id = a.id and f.kind = 'node_lost' and f.proof ? 'seen')
			+ coalesce(r.script_node_lost_after = a.number, false)::integer,
		'complete', coalesce(a.state = 'complete', false), 'not_reached', r.is_not_reached) order by r.id), '[]')
	from runs r
	left join lateral (select * from attempts where run_id = r.id order by number desc limit 1) a on true
	left join lateral (select wlb_attempt_given(a::attempts) as nodes where a.id is not null) given on true
	where r.state in ('starting', 'running', 'restarting')
$$;

-- Runs that have ended while their jobs go on. A job is judged by its open run while it has one: what becomes of it is decided from the
-- state of that run, and not from that of an earlier run of its script, which may have failed.
create function wlb_runs_left() returns json language sql stable as $$
	select coalesce(json_agg(json_build_object('run_pk', id, 'run', name, 'job_id', job_id, 'uid', uid,
		'restart_count', restart_count, 'complete', state = 'complete')), '[]')
	from (select * from runs r
		where state in ('complete', 'failed', 'out_of_nodes', 'cancelled') and confirmed and ended_at > now() - interval '1 day'
			and (job_over_restart_count is null or job_over_restart_count < restart_count)
			and not exists (select from runs o where o.job_id = r.job_id and o.uid = r.uid
				and o.submitted_at is not distinct from r.submitted_at and not wlb_run_is_over(o.state))
		order by ended_at desc limit 256) as left_behind
$$;

-- Ids of the open runs that are not confirmed by Slurm yet.
create function wlb_runs_provisional() returns json language sql stable as $$
	select coalesce(json_agg(id order by id), '[]')
	from runs where not confirmed and state in ('starting', 'running', 'restarting')
$$;

-- p_by 'slurm': the job is over since p_ended (null: it is not known since when), and its launcher has not reported how the run
-- ended. The cause of the last attempt is then part of the reason.
create function wlb_run_end(p_run bigint, p_state text, p_reason text, p_by text, p_ended timestamptz default null)
returns text language plpgsql as $$
declare
	last attempts;
	result text;
	over_at timestamptz;
begin
	perform from runs where id = p_run for no key update;
	over_at := case when p_by = 'slurm' then wlb_run_over_at(p_run, p_ended) else now() end;
	perform wlb_suspensions_end(p_run, over_at);
	perform wlb_attempt_end(id, case when p_state = 'complete' then 'complete' else 'lost' end, null, '', over_at)
	from attempts where run_id = p_run and state in ('starting', 'running');
	select * into last from attempts where run_id = p_run order by number desc limit 1;
	update runs set state = p_state, ended_by = p_by, ended_at = coalesce(ended_at, over_at), reason = case
		when p_by = 'slurm' and p_state <> 'complete'
			then concat_ws('; ', case when last.state <> 'complete' then nullif(last.reason, '') end, p_reason)
		when last.told <> '' and last.reason <> '' then wlb_reason_with(p_reason, last.told, last.reason)
		else p_reason end
	where id = p_run and (ended_by is null or (p_by = 'launcher' and ended_by <> 'launcher'));
	select state into result from runs where id = p_run;
	return result;
end $$;

-- p_attempt: the last attempt of the launcher that reports the end, if it states it; the report of a launcher that
-- Slurm has replaced by another (the job was requeued) is ignored.
create function wlb_run_end_by(p_name text, p_uid bigint, p_attempt uuid, p_state text, p_reason text)
returns text language plpgsql as $$
declare
	r runs := wlb_run_actable(p_name, p_uid);
begin
	if p_attempt is not null and (
		exists (select from attempts where run_id = r.id and launched and number > (
			select number from attempts where uuid = p_attempt))
		or r.requeued_at > (select created_at from attempts where uuid = p_attempt)) then
		raise exception using errcode = 'WL409', message = format(
			'attempt %s is not the newest of run %s: another wlb run goes on with it', p_attempt, p_name);
	end if;
	return wlb_run_end(r.id, p_state, p_reason, 'launcher');
end $$;

-- Notes that the job of the run, which ended at p_ended, is requeued, for p_reason. Returns how many times that makes; 0 if
-- it was p_max times already or the run is over; -1 if it has just been done. An attempt that is open ends. A stored time ahead of the
-- database's clock, which was set back, is no requeue that has just been done.
create function wlb_run_requeue(p_run bigint, p_attempt bigint, p_reason text, p_max integer, p_ended timestamptz)
returns integer language plpgsql as $$
declare
	r runs;
	over_at timestamptz;
begin
	select * into r from runs where id = p_run for no key update;
	if r.requeued_at between now() - interval '10 s' and now() then
		return -1;
	elsif r.ended_by is not null or r.requeues >= p_max then
		return 0;
	end if;
	over_at := wlb_run_over_at(p_run, p_ended);
	update runs set requeues = requeues + 1, requeued_at = now(), state = 'restarting' where id = p_run;
	update queue_waits set began_at = least(began_at, over_at) where run_id = p_run and ended_at is null;
	perform wlb_attempt_end(id, 'lost', null, p_reason, over_at) from attempts
	where run_id = p_run and state in ('starting', 'running');
	perform wlb_event_add(p_run, p_attempt, 'job_requeued', format('%s; job %s is requeued, %s of at most %s times',
		p_reason, r.job_id, r.requeues + 1, p_max), now());
	return r.requeues + 1;
end $$;

-- Takes back what wlb_run_requeue() has just counted, since Slurm refused the requeue; the next try is not before 10 s after it. An event
-- of the same failure is kept once for an attempt: Slurm may refuse as long as it knows the job.
create function wlb_run_not_requeued(p_run bigint, p_attempt bigint, p_failure text) returns void language plpgsql as $$
begin
	perform from runs where id = p_run for no key update;
	update runs set requeues = requeues - 1 where id = p_run and requeues > 0;
	delete from events where id = (select max(id) from events
		where run_id = p_run and attempt_id is not distinct from p_attempt and kind = 'job_requeued');
	perform wlb_event_add(p_run, p_attempt, 'job_not_requeued', p_failure, now())
	where not exists (select from events
		where run_id = p_run and attempt_id is not distinct from p_attempt and kind = 'job_not_requeued' and detail = p_failure);
end $$;

create function wlb_run_job_over(p_run bigint, p_restart_count bigint) returns void language sql as $$
	update runs set job_over_restart_count = p_restart_count where id = p_run
$$;

-- The job is queued again or ended, since the node of its script is down. One that is queued again starts the script anew, with
-- the run in it.
create function wlb_run_job_without_script(p_run bigint, p_restart_count bigint, p_kind text, p_detail text)
returns void language plpgsql as $$
declare
	last attempts;
begin
	perform from runs where id = p_run for no key update;
	select * into last from attempts where run_id = p_run order by number desc limit 1;
	perform wlb_event_add(p_run, last.id, p_kind, p_detail, now());
	perform wlb_run_job_over(p_run, p_restart_count);
	update runs set state = 'restarting', ended_by = null, ended_at = null, requeued_at = now(), script_node_lost_after = last.number
	where id = p_run and state = 'complete' and p_kind = 'job_requeued';
end $$;

create function wlb_job_resized(p_run bigint, p_attempt bigint, p_least integer, p_detail text, p_time timestamptz)
returns void language sql as $$
	update attempts set resized_to = least(resized_to, p_least) where id = p_attempt;
	select wlb_event_add(p_run, p_attempt, 'job_resized', p_detail, p_time)
$$;
