-- Attempts: how they begin and end, and what wlbd loads of them.

-- Whether an attempt has completed its training and then ended without an error. Ranks may die after rank 0 has recorded the
-- end of the training, each time that the command is started again.
create function wlb_has_completed(p_state text, p_exit_code integer) returns boolean language sql immutable as $$
	select p_state = 'complete' and coalesce(p_exit_code, 0) = 0
$$;

-- An attempt that has saved and stopped when it was asked to, before the end of its job: state `ended` with exit code 85
-- or, of another trainer than wlb-worker, 0. Its job is queued again.
create function wlb_has_saved_and_stopped(p_state text, p_exit_code integer) returns boolean language sql immutable as $$
	select p_state = 'ended' and coalesce(p_exit_code in (0, 85), false)
$$;

-- The reason as it is shown: each attempt that has ended and is not complete has one. What is stored stays empty until something that
-- knows the reason tells it.
create function wlb_attempt_reason(p_state text, p_reason text, p_exit_code integer) returns text language sql immutable as $$
	select case
		when p_reason <> '' or p_state not in ('failed', 'ended', 'lost') then p_reason
		when p_state = 'ended' and p_exit_code in (0, 85) then 'it saved and stopped as it was asked to'
		when p_state = 'ended' then 'it was ended by order'
		when p_exit_code is not null then format('it ended with exit code %s', p_exit_code)
		else 'its end was not reported' end
$$;

-- The nodes that the job of an attempt gave it, spares included: as wlbd decided, else as its processes say.
create function wlb_attempt_given(a attempts) returns text[] language sql immutable as $$
	select case when a.decision is null then a.nodes || a.spares
		else array(select jsonb_array_elements_text((a.decision->'nodes') || coalesce(a.decision->'spares', '[]'))) end
$$;

-- Whether wlbd has let the attempt start on the node, as one that Slurm had just named as the job's. Evidence against a node is for all
-- users, so it rests on nothing that a client has said; and nodes that a job had are not its own any more once it is over.
create function wlb_attempt_has_node(p_attempt bigint, p_node text) returns boolean language sql stable as $$
	select exists (select from attempts a
		where a.id = p_attempt and a.launched and (a.decision->>'of_job')::boolean and p_node = any(wlb_attempt_given(a)))
$$;

-- Whether the step of an attempt may still run although the end of its training is recorded: srun waits for the tasks of every node.
-- A wlbd that is started before the launcher reports the end of the step has to watch the nodes of that attempt.
create function wlb_attempt_runs_on(a attempts) returns boolean language sql stable as $$
	select a.launched and not a.launcher_told and a.state in ('complete', 'failed', 'ended')
		and not exists (select from attempts b where b.run_id = a.run_id and b.number > a.number)
		and exists (select from runs r where r.id = a.run_id and r.state in ('starting', 'running', 'restarting')
			and r.ended_by is null and (r.requeued_at is null or r.requeued_at < a.created_at))
$$;

-- What wlbd keeps in memory of an attempt.
create function wlb_attempt_json(p_attempt bigint) returns json language sql stable as $$
	select json_build_object('run_pk', r.id, 'run', r.name, 'job_id', r.job_id, 'uid', r.uid,
		'confirmed', r.confirmed, 'attempt_pk', a.id, 'attempt', a.number, 'attempt_id', a.uuid, 'state', a.state,
		'runs_on', wlb_attempt_runs_on(a), 'is_run_over', wlb_run_is_over(r.state),
		'exit_code', coalesce(a.exit_code, case a.state when 'complete' then 0 when 'ended' then 75 end),
		'reason', a.reason, 'slurm_step', a.slurm_step, 'node_reported', a.node_reported, 'nodes', to_json(a.nodes),
		'is_explained', exists (select from faults f where f.attempt_id = a.id and f.cause),
		'world_size', coalesce(a.world_size,
			cardinality(a.nodes) * (a.decision->>'tasks_per_node')::integer),
		'layout', wlb_layout_json(a.tp, a.cp, a.pp, a.dp), 'on_fault', r.policy->>'on_fault',
		'goes_on', a.goes_on, 'min_nodes', coalesce((r.policy->>'min_nodes')::integer, 0), 'spares', cardinality(a.spares),
		'rank_nodes', (select json_agg(node order by rank) from rank_map where attempt_id = a.id
			having max(rank) = count(*) - 1))
	from attempts a join runs r on r.id = a.run_id where a.id = p_attempt
$$;

create function wlb_attempt_find(p_uuid uuid) returns json language sql stable as $$
	select wlb_attempt_json(id) from attempts where uuid = p_uuid
$$;

-- The attempts under way, and the newest of a run where its step may run on, or where it has failed and no cause is recorded. wlbd
-- loads their JSON one by one: the nodes and ranks of all of them in one statement can take longer than a statement may.
create function wlb_attempts_open() returns json language sql stable as $$
	select coalesce(json_agg(a.id order by a.id), '[]')
	from attempts a join runs r on r.id = a.run_id
	where r.state in ('starting', 'running', 'restarting') and (a.state in ('starting', 'running')
		or wlb_attempt_runs_on(a)
		or (a.state = 'failed' and a.ended_at > now() - interval '1 hour'
			and not exists (select from attempts b where b.run_id = a.run_id and b.number > a.number)
			and not exists (select from faults f where f.attempt_id = a.id and f.cause)))
$$;

-- Every change of an attempt locks its run first, as deliveries do: otherwise two statements could deadlock.
create function wlb_attempt_lock(p_attempt bigint) returns void language sql as $$
	select from runs where id = (select run_id from attempts where id = p_attempt) for no key update;
	select from attempts where id = p_attempt for no key update
$$;

-- Notes why an attempt follows a complete one, once.
create function wlb_attempt_begun_again(a attempts) returns void language sql as $$
	select wlb_event_add(a.run_id, a.id, 'begun_again', format('job %s was requeued after attempt %s was complete: its script '
		'began again, and came to this run', r.job_id, a.number - 1), now())
	from runs r where r.id = a.run_id
		and exists (select from attempts where run_id = a.run_id and number = a.number - 1 and state = 'complete')
		and not exists (select from events where attempt_id = a.id and kind = 'begun_again')
$$;

-- Locks the run before anything else, as all statements that change an attempt do: two of them at once would give two attempts the same
-- number, or deadlock with a delivery. p_is_late: the run is over; its attempt has ended.
create function wlb_attempt_create(p_run bigint, p_uuid uuid, p_is_late boolean default false) returns attempts language plpgsql as $$
declare
	r runs;
	a attempts;
	newest integer;
	attempts_max constant integer := 10000;
begin
	select * into r from runs where id = p_run for no key update;
	select coalesce(max(number), 0) into newest from attempts where run_id = p_run;
	if newest >= attempts_max then
		raise exception using errcode = 'WL409', message = format(
			'run %s: has %s attempts, and can have %s; begin another run with a new `wlb run`', r.name, newest, attempts_max);
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

-- Stores a decision to start; asked again with the same attempt_id, the first one stands. p_held_nodes: how many nodes
-- of the job could work.
create function wlb_attempt_start(p_run bigint, p_uuid uuid, p_decision jsonb, p_policy jsonb,
	p_held_nodes integer) returns json language plpgsql as $$
declare
	a attempts;
	layout jsonb := p_decision->'layout';
begin
	perform from runs where id = p_run for no key update;
	select * into a from attempts where uuid = p_uuid;
	if a.id is null then
		a := wlb_attempt_create(p_run, p_uuid);
	end if;
	if a.decision is null then
		update attempts set
			launched = true,
			goes_on = coalesce(p_decision->>'on_rank_exit' = 'continue', false),
			held_nodes = p_held_nodes,
			decision = p_decision || jsonb_build_object('attempt', a.number),
			nodes = array(select jsonb_array_elements_text(p_decision->'nodes')),
			spares = array(select jsonb_array_elements_text(p_decision->'spares')),
			tp = (layout->>'tp')::integer, cp = (layout->>'cp')::integer,
			pp = (layout->>'pp')::integer, dp = (layout->>'dp')::integer,
			resumed_step = (p_decision->'checkpoint'->>'step')::bigint,
			checkpoint_path = p_decision->'checkpoint'->>'path'
		where id = a.id;
		update runs set policy = policy || p_policy where id = p_run;
		-- Of an older attempt that is still open nobody will report the end: its launcher was replaced.
		perform wlb_attempt_end(id, 'lost', null, format('attempt %s has begun', a.number), now())
		from attempts where run_id = p_run and number < a.number and state in ('starting', 'running');
	end if;
	return json_build_object('attempt', wlb_attempt_json(a.id), 'decision',
		(select decision from attempts where id = a.id));
end $$;

-- An attempt that began while wlbd was unavailable, known from its first record or report. The job is announced too; where it has
-- started again meanwhile, its count of restarts says so. p_is_queued: it is in the queue now, and the attempt is of the start before.
-- Slurm gives a job that is requeued another time of submission; runs of one job have the first.
create function wlb_attempt_ensure(p_name text, p_uuid uuid, p_job_id bigint, p_uid bigint, p_user text, p_cluster text,
	p_job_name text, p_submitted timestamptz, p_restart_count integer, p_is_queued boolean,
	p_is_job_over boolean default false, p_is_report boolean default false, p_job text default '',
	p_account text default '', p_gpus bigint default 0)
returns json language plpgsql as $$
declare
	r runs;
	known runs;
	a attempts;
	is_late boolean;
begin
	select * into a from attempts where uuid = p_uuid;
	if a.id is not null then
		return wlb_attempt_json(a.id);
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
	-- A launcher of a later start of the job may have begun it while wlbd was unavailable.
	is_late := wlb_run_is_over(r.state) and (p_is_job_over or (coalesce(r.ended_by = 'launcher', false)
		and not coalesce(p_submitted is not null and p_restart_count > coalesce(r.launcher_start, r.restart_count), false)));
	if is_late and p_is_report then
		raise exception using errcode = 'WL409', message = format('run %s has ended (%s), and gets no further attempt', r.name, r.state);
	end if;
	perform wlb_run_job_note(r.id, p_job, p_account, p_gpus);
	a := wlb_attempt_create(r.id, p_uuid, is_late);
	update runs set is_not_reached = false where id = r.id and is_not_reached;
	-- Beyond this number of attempts without an end, the oldest are ended: the number of open attempts bounds memory.
	update attempts set state = 'lost', reason = format('attempt %s has begun', a.number), ended_at = now()
	where run_id = r.id and number <= a.number - 64 and state in ('starting', 'running');
	return wlb_attempt_json(a.id);
end $$;

-- Its processes are there: rank 0 tells it, and the launcher, for commands that record nothing themselves.
create function wlb_attempt_begun(a attempts, p_time timestamptz) returns void language sql as $$
	update attempts set state = case when state = 'starting' then 'running' else state end,
		started_at = coalesce(started_at, p_time)
	where id = a.id;
	update runs set state = case when state in ('starting', 'restarting') then 'running' else state end,
		started_at = coalesce(started_at, p_time)
	where id = a.run_id;
$$;

-- Its step was started by srun alone, and the agents of its nodes record it: its processes are there, and nothing ends them.
create function wlb_attempt_is_own(p_attempt bigint) returns void language sql as $$
	select wlb_attempt_lock(p_attempt);
	update attempts set goes_on = true where id = p_attempt;
	select wlb_attempt_begun(a, now()) from attempts a where a.id = p_attempt and a.state = 'starting'
$$;

create function wlb_attempt_reported(p_attempt bigint, p_step bigint) returns void language sql as $$
	update attempts set reported_step = p_step where id = p_attempt and coalesce(reported_step, 0) < p_step
$$;

-- Whether all that is known of the end is that its step failed: the launcher says more, and its record may arrive later.
create function wlb_has_reason_of_step(a attempts) returns boolean language sql stable as $$
	select exists (select from faults where attempt_id = a.id and cause and strength = 0 and sentence = a.reason)
$$;

-- The first final state of an attempt's end stays; `lost` and `ended` are replaced when more is known.
create function wlb_attempt_end(p_attempt bigint, p_state text, p_exit_code integer, p_reason text, p_time timestamptz)
returns void language sql as $$
	select wlb_attempt_lock(p_attempt);
	update attempts set
		state = case when state in ('complete', 'failed') then state else p_state end,
		reason = case when p_state = 'complete' and state = 'lost' then p_reason
			when p_reason = '' or (reason <> '' and state in ('complete', 'failed')
				and not wlb_has_reason_of_step(attempts)) then reason
			else p_reason end,
		told = case when p_reason = '' then told else p_reason end,
		exit_code = coalesce(p_exit_code, exit_code),
		ended_at = coalesce(ended_at, p_time)
	where id = p_attempt;
	select wlb_attempt_settle(p_attempt)
$$;

-- The step of an attempt has ended, according to its launcher.
create function wlb_attempt_exited(p_attempt bigint, p_exit_code integer, p_slurm_step text,
	p_time timestamptz)
returns void language sql as $$
	select wlb_attempt_lock(p_attempt);
	update attempts set slurm_step = coalesce(p_slurm_step, slurm_step), launcher_told = true where id = p_attempt;
	select wlb_attempt_end(p_attempt, case p_exit_code when 0 then 'complete' when 75 then 'ended' else 'failed' end,
		p_exit_code, '', p_time)
$$;

-- wlbd has found the faults that broke the attempt, and recorded them; p_reason is for an attempt without any.
create function wlb_attempt_blame(p_attempt bigint, p_reason text, p_time timestamptz)
returns void language sql as $$
	select wlb_attempt_lock(p_attempt);
	update attempts set state = 'failed', reason = case when reason = '' then p_reason else reason end,
		ended_at = coalesce(ended_at, p_time)
	where id = p_attempt and state <> 'complete';
	select wlb_attempt_settle(p_attempt)
$$;

-- Slurm says that the job of the attempt is queued, which it was not when the attempt began; p_restart_count is of the job now.
-- p_time: when it was queued, as Slurm says, or now. It is no such time where it is not after the begin of the attempt, nor where it
-- is after now: it may be of a host whose clock is ahead, and the next attempt begins after it. A launcher that has reported the
-- order as the end of the run did not know that the job is to start again.
create function wlb_attempt_requeued(p_attempt bigint, p_restart_count integer, p_reason text, p_time timestamptz)
returns void language plpgsql as $$
declare
	a attempts;
	queued timestamptz;
begin
	perform wlb_attempt_lock(p_attempt);
	select * into a from attempts where id = p_attempt;
	queued := case when p_time > coalesce(a.started_at, a.created_at) then least(p_time, now()) else now() end;
	if a.state in ('starting', 'running', 'ended', 'lost') then
		perform wlb_attempt_end(p_attempt, 'ended', null, p_reason, queued);
		update attempts set queued_again = true where id = p_attempt
			and not exists (select from faults where attempt_id = p_attempt and cause);
	end if;
	-- It may have started again meanwhile. A client's time of the end may be before the attempt, by its clock.
	update runs set state = 'restarting', reason = '', ended_by = null, ended_at = null,
		requeued_at = greatest(requeued_at, least(now(), case when a.ended_at > a.created_at then a.ended_at else queued end))
	where id = a.run_id and restart_count < p_restart_count
		and (ended_by is null or (ended_by = 'launcher' and state = 'cancelled'))
		and not exists (select from attempts b where b.run_id = a.run_id and b.number > a.number);
end $$;

-- The job of a run has started again since: an attempt that is open has ended, and was last known at p_time.
create function wlb_earlier_attempts_end(p_run bigint, p_time timestamptz) returns void language sql as $$
	select wlb_attempt_end(id, 'lost', null, 'its job has started again', p_time)
	from attempts where run_id = p_run and state in ('starting', 'running')
$$;
