-- Runs of array tasks and of components of heterogeneous jobs are found by the names that Slurm shows: 15_2, 15+1.
--
-- Replaces: functions wlb_run_meant (which finds them), wlb_run_found (which says on which component runs are), wlb_attempt_ensure (which
-- notes it for a run that it makes, and knows whether the job is over, and whether a report or a record asks).

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

-- p_is_job_over: Slurm says that the job has ended, or does not know it any more. p_is_report: a process reports that it lives, and no
-- record of it is to be stored.
drop function wlb_attempt_ensure(text, uuid, bigint, bigint, text, text, text, timestamptz, integer, boolean);
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
