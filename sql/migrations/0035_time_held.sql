-- The time that a run holds its nodes: it ends when Slurm says that the job ended, which wlbd may learn much later; the times in
-- which the job was in the queue, or suspended, are no part of it, also those that wlbd did not see begin.
--
-- Replaces: functions wlb_run_end and wlb_run_requeue (which take the time at which the job ended), wlb_attempt_ensure,
-- wlb_queue_wait_note, wlb_attempt_work, wlb_run_gaps, wlb_run_time, wlb_runs_open.

-- ---- when a job ended ----------------------------------------------------------------------------------------------------

-- The newest time at which something is known of a run's attempts; null: it has none.
create function wlb_run_last_sign(p_run bigint) returns timestamptz language sql stable as $$
	select max(greatest(asked, reported, ended, step_ended)) from wlb_attempt_marks(p_run)
$$;

-- When the job of a run ended. p_ended: as Slurm says; null where Slurm has forgotten the job.
create function wlb_run_over_at(p_run bigint, p_ended timestamptz) returns timestamptz language sql stable as $$
	select least(now(), case when p_ended is null then wlb_run_last_sign(p_run)
		else greatest(wlb_moment(p_ended), (select max(wlb_attempt_asked(a)) from attempts a where a.run_id = p_run)) end)
$$;

drop function wlb_run_end(bigint, text, text, text);

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

drop function wlb_run_requeue(bigint, bigint, text, integer);

-- Notes that the job of the run, which ended at p_ended, is queued again, for p_reason. Returns how many times that makes; 0 if
-- it was p_most times already or the run is over; -1 if it has just been done. An attempt that is open ends.
create function wlb_run_requeue(p_run bigint, p_attempt bigint, p_reason text, p_most integer, p_ended timestamptz)
returns integer language plpgsql as $$
declare
	r runs;
	over_at timestamptz;
begin
	select * into r from runs where id = p_run for no key update;
	if r.requeued_at > now() - interval '10 s' then
		return -1;
	elsif r.ended_by is not null or r.requeues >= p_most then
		return 0;
	end if;
	over_at := wlb_run_over_at(p_run, p_ended);
	update runs set requeues = requeues + 1, requeued_at = now(), state = 'restarting' where id = p_run;
	update queue_waits set began_at = least(began_at, over_at) where run_id = p_run and ended_at is null;
	perform wlb_attempt_end(id, 'lost', null, p_reason, over_at) from attempts
	where run_id = p_run and state in ('starting', 'running');
	perform wlb_event_add(p_run, p_attempt, 'job_requeued', format('%s; job %s is queued again, %s of at most %s times',
		p_reason, r.job_id, r.requeues + 1, p_most), now());
	return r.requeues + 1;
end $$;

-- ---- waits in the queue --------------------------------------------------------------------------------------------------

-- Removes the oldest waits of a run: the newest 1,000 are kept, as many as of its attempts are shown.
create function wlb_queue_waits_trim(p_run bigint) returns void language sql as $$
	delete from queue_waits where run_id = p_run and id <= (
		select id from queue_waits where run_id = p_run order by id desc offset 1000 limit 1)
$$;

-- Where a wait begins that follows the end of a run or of its last attempt; null where neither has ended.
create function wlb_queue_wait_since(p_run bigint, p_run_ended timestamptz) returns timestamptz language sql stable as $$
	select case when ended is not null
		then greatest(ended, (select max(ended_at) from queue_waits where run_id = p_run)) end
	from (select coalesce(p_run_ended,
		(select ended_at from attempts where run_id = p_run order by number desc limit 1)) as ended) as known
$$;

-- A wait begins when wlbd has the job queued again, or sees it queued. Where it was neither, it begins when the run or its last
-- attempt ended, if either did. It ends when the job announces itself with a greater count of restarts.
create or replace function wlb_queue_wait_note() returns trigger language plpgsql as $$
declare
	since timestamptz;
begin
	if new.requeued_at is distinct from old.requeued_at then
		if not exists (select from queue_waits where run_id = new.id and ended_at is null) then
			insert into queue_waits (run_id, began_at) values (new.id, new.requeued_at);
		end if;
	else
		update queue_waits set ended_at = now() where run_id = new.id and ended_at is null;
		if not found then
			since := wlb_queue_wait_since(new.id, old.ended_at);
			insert into queue_waits (run_id, began_at, ended_at) select new.id, since, now() where since < now();
		end if;
	end if;
	perform wlb_queue_waits_trim(new.id);
	return null;
end $$;

-- The job of a run, whose attempts have all ended, is in the queue; p_restart_count is of the job now.
create function wlb_run_queued(p_run bigint, p_restart_count integer) returns void language plpgsql as $$
declare
	r runs;
begin
	select * into r from runs where id = p_run for no key update;
	if r.restart_count >= p_restart_count or exists (select from queue_waits where run_id = p_run and ended_at is null)
		or exists (select from attempts where run_id = p_run and state in ('starting', 'running')) then
		return;
	end if;
	insert into queue_waits (run_id, began_at)
	select p_run, since from wlb_queue_wait_since(p_run, r.ended_at) as since where since is not null;
	perform wlb_queue_waits_trim(p_run);
end $$;

-- An attempt that began while wlbd was away, known from its first record or report. The job is announced too; where it has
-- started again meanwhile, its count of restarts says so.
create or replace function wlb_attempt_ensure(p_name text, p_uuid uuid, p_job_id bigint, p_uid bigint, p_user text,
	p_cluster text, p_job_name text, p_submitted timestamptz, p_restart_count integer)
returns json language plpgsql as $$
declare
	r runs;
	a attempts;
begin
	select * into a from attempts where uuid = p_uuid;
	if a.id is not null then
		return wlb_attempt_card(a.id);
	end if;
	select * into r from runs where name = p_name and (uid = p_uid or (confirmed and p_submitted is not null))
	order by id desc limit 1;
	if r.id is null or wlb_job_is_another(r, p_uid, p_submitted, p_restart_count) then
		r := wlb_run_create(p_job_id,
			case when p_name ~ '\.[0-9]{1,6}$' then substring(p_name from '\.([0-9]+)$')::integer else 1 end,
			p_uid, p_user, p_cluster, p_job_name, p_submitted, p_restart_count, '{}');
	elsif p_submitted is not null then
		perform wlb_run_confirm(r.id, p_submitted, p_restart_count, p_job_name, p_cluster);
		update runs set restart_count = p_restart_count
		where id = r.id and restart_count < p_restart_count and ended_by is distinct from 'launcher';
	end if;
	a := wlb_attempt_create(r.id, p_uuid);
	-- Beyond this number of attempts without an end, the oldest are ended: the number of open attempts bounds memory.
	update attempts set state = 'lost', reason = format('attempt %s has begun', a.number), ended_at = now()
	where run_id = r.id and number <= a.number - 64 and state in ('starting', 'running');
	return wlb_attempt_card(a.id);
end $$;

-- ---- suspension ----------------------------------------------------------------------------------------------------------

-- Times in which the job of a run was suspended: of each run the newest 1,000.
create table suspensions (
	id bigint generated always as identity primary key,
	run_id bigint not null references runs on delete cascade,
	began_at timestamptz not null,
	ended_at timestamptz -- null: it is suspended
);
create index on suspensions (run_id, id);

-- The job of a run was suspended at p_time, or resumed.
create function wlb_run_suspended(p_run bigint, p_is_suspended boolean, p_time timestamptz) returns void
language plpgsql as $$
begin
	perform from runs where id = p_run for no key update;
	if not p_is_suspended then
		update suspensions set ended_at = greatest(began_at, p_time) where run_id = p_run and ended_at is null;
	elsif not exists (select from suspensions where run_id = p_run and ended_at is null) then
		insert into suspensions (run_id, began_at)
		select p_run, greatest(p_time, (select max(ended_at) from suspensions where run_id = p_run));
		delete from suspensions where run_id = p_run and id <= (
			select id from suspensions where run_id = p_run order by id desc offset 1000 limit 1);
	end if;
end $$;

-- Seconds from one time to a later one in which the job of a run was not suspended. p_any: it was ever suspended.
create function wlb_seconds_held(p_run bigint, p_any boolean, p_began timestamptz, p_ended timestamptz) returns numeric
language sql stable as $$
	select case when p_any and p_began < p_ended then greatest(wlb_seconds_between(p_began, p_ended) - coalesce((
			select sum(wlb_seconds_between(greatest(p_began, wlb_moment(s.began_at)),
				least(p_ended, coalesce(wlb_moment(s.ended_at), p_ended))))
			from suspensions s where s.run_id = p_run), 0), 0)
		else wlb_seconds_between(p_began, p_ended) end
$$;

-- ---- what the times add up to --------------------------------------------------------------------------------------------

-- Seconds of a run's attempts, as their steps and checkpoints were recorded: kept_s of steps that count, repeated_s of
-- those that a later attempt did again, or that were lost because they were after the checkpoint from which it resumed,
-- or after the newest where the last attempt is broken. An attempt that ended before its workers reported has repeated
-- nothing: only the last one, which may still start, says by its decision from where.
create or replace function wlb_attempt_work(p_run bigint) returns table (attempt_id bigint, kept_s numeric,
	repeated_s numeric, checkpoint_s numeric, share numeric)
language sql stable rows 16 as $$
	with known as (
		select a as attempt, a.number, a.state,
			case when a.world_size is not null or a.number = (select max(number) from attempts where run_id = p_run)
				then coalesce(a.resumed_step, case when a.decision is not null and a.world_size is null then 0 end)
			end as resumed_step
		from attempts a where a.run_id = p_run
	), cut as (
		select attempt, least(min(resumed_step) over later,
			case when last_value(state) over whole in ('failed', 'ended', 'lost')
				then coalesce((select max(step) from checkpoints where run_id = p_run), 0) end) as kept_to
		from known
		window later as (order by number rows between 1 following and unbounded following),
			whole as (order by number rows between unbounded preceding and unbounded following)
	), lost as (
		select attempt, case when kept_to is null then 0 else wlb_step_seconds_after(attempt, kept_to) end as lost_s
		from cut
	)
	select (attempt).id, (attempt).step_seconds - lost_s, (attempt).repeated_seconds + lost_s,
		(attempt).checkpoint_seconds, wlb_attempt_share(attempt)
	from lost
$$;

-- The times before a run's first attempt (attempt_id is null) and those from the end of each to the next: `seconds` of them
-- without those in which the job waited in the queue or was suspended. A wait is over at the latest when the next attempt is
-- asked for.
create or replace function wlb_run_gaps(p_run bigint) returns table (attempt_id bigint, seconds numeric)
language sql stable rows 16 as $$
	with t as (
		select * from wlb_attempt_times(p_run)
	), bounds as (
		select *, exists (select from suspensions where run_id = p_run) as any_suspended from wlb_run_bounds(p_run)
	), waits as (
		select wlb_moment(q.began_at) as began, least(coalesce(wlb_moment(q.ended_at), b.ended),
			(select min(asked) from t where asked > q.began_at)) as ended
		from queue_waits q, bounds b where q.run_id = p_run
	), gaps as (
		select attempt_id, detected as began, next as ended from t
		union all
		select null, began, coalesce((select min(asked) from t), ended) from bounds
	)
	select g.attempt_id, greatest(wlb_seconds_held(p_run, b.any_suspended, g.began, g.ended) - coalesce((
			select sum(wlb_seconds_held(p_run, b.any_suspended, greatest(g.began, w.began), least(g.ended, w.ended)))
			from waits w), 0), 0)
	from gaps g cross join bounds b
$$;

-- Steps and checkpoints cannot have taken longer than from the first step's begin to the last one's end, without the time in
-- which the job was suspended: the clock by which steps are timed runs on. jit: where the statistics of the tables are old,
-- PostgreSQL expects many rows and would compile the statement again at each call.
create or replace function wlb_run_time(p_run bigint) returns wlb_run_seconds language sql stable set jit = off as $$
	with spent as (
		select t.*, g.seconds as gap_s, stepping_s, kept, repeated, saving, round(kept * share, 9) as effective,
			exists (select from suspensions where run_id = p_run) as any_suspended
		from wlb_run_gaps(p_run) as g
		left join wlb_attempt_times(p_run) as t on t.attempt_id = g.attempt_id
		left join wlb_attempt_work(p_run) as w on w.attempt_id = g.attempt_id
		cross join lateral (select wlb_seconds_held(p_run, exists (select from suspensions where run_id = p_run), t.began,
			t.ended) as stepping_s) as all_of_it
		cross join lateral (select greatest(least(w.kept_s, stepping_s), 0) as kept) as k
		cross join lateral (select greatest(least(w.repeated_s, stepping_s - kept), 0) as repeated) as r
		cross join lateral (select greatest(least(w.checkpoint_s, stepping_s - kept - repeated), 0) as saving) as s
	), parts as (
		select coalesce(sum(effective), 0) as effective_s,
			coalesce(sum(wlb_seconds_held(p_run, any_suspended, fault, detected)), 0) as detect_s,
			coalesce(sum(gap_s) filter (where is_broken), 0) as decide_s,
			coalesce(sum(wlb_seconds_held(p_run, any_suspended, asked, reported)), 0) as start_s,
			coalesce(sum(wlb_seconds_held(p_run, any_suspended, reported, began)), 0) as load_s,
			coalesce(sum(repeated + wlb_seconds_held(p_run, any_suspended, ended, fault)), 0) as repeated_s,
			coalesce(sum(saving), 0) as checkpoint_s,
			coalesce(sum(kept - effective), 0) as idle_s,
			coalesce(sum(stepping_s - kept - repeated - saving), 0)
				+ coalesce(sum(gap_s) filter (where is_broken is not true), 0) as other_s,
			coalesce(bool_or(records), false) as is_recorded
		from spent
	)
	select row(effective_s + detect_s + decide_s + start_s + load_s + repeated_s + checkpoint_s + idle_s + other_s,
		effective_s, detect_s, decide_s, start_s, load_s, repeated_s, checkpoint_s, idle_s, other_s,
		is_recorded)::wlb_run_seconds
	from parts
$$;

-- The data for judging an open run by its Slurm job. `told`: the launcher has reported how the last attempt ended.
-- `is_waiting`, `is_suspended`: it is recorded that the job is in the queue, or suspended, now.
create or replace function wlb_runs_open() returns json language sql stable as $$
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
		'resized_to', coalesce(a.resized_to, 0),
		'attempt_pk', a.id, 'launched', coalesce(a.launched, false),
		'told', coalesce(a.launcher_told, false),
		'launcher_lost', exists (select from faults f
			where f.attempt_id = a.id and f.kind in ('launcher_lost', 'script_lost')),
		'lost_nodes', (select count(distinct node) from faults f
			where f.attempt_id = a.id and f.kind = 'node_lost' and f.proof ? 'seen'),
		'complete', coalesce(a.state = 'complete', false)) order by r.id), '[]')
	from runs r
	left join lateral (select * from attempts where run_id = r.id order by number desc limit 1) a on true
	left join lateral (select wlb_attempt_given(a::attempts) as nodes where a.id is not null) given on true
	where r.state in ('starting', 'running', 'restarting')
$$;
