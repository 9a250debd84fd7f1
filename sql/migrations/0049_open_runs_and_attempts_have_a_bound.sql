-- Bounds on what one user makes: the poll of Slurm looks at every open run, and a decision at every attempt of its run.
--
-- Replaces: functions wlb_run_create, wlb_attempt_create.

create index on runs (uid, job_id) where state in ('starting', 'running', 'restarting');

-- Raises where the job has as many open runs of its user, or the user as many in all, as there can be. Statements of different jobs
-- may find the same number at once, so that a few more are made.
create function wlb_open_runs_check(p_job_id bigint, p_uid bigint, p_user text) returns void language plpgsql as $$
declare
	of_job bigint;
	of_user bigint;
	of_job_most constant bigint := 1024;
	of_user_most constant bigint := 4096;
begin
	select count(*) filter (where job_id = p_job_id), count(*) into of_job, of_user from runs
	where uid = p_uid and state in ('starting', 'running', 'restarting');
	if of_job >= of_job_most then
		raise exception using errcode = 'WL503', message = format(
			'job %s: has %s open runs, and can have %s; try again when one of them has ended', p_job_id, of_job, of_job_most);
	elsif of_user >= of_user_most then
		raise exception using errcode = 'WL503', message = format(
			'job %s: user %s has %s open runs, and can have %s; try again when one of them has ended', p_job_id, p_user,
			of_user, of_user_most);
	end if;
end $$;

create or replace function wlb_run_create(p_job_id bigint, p_launch integer, p_uid bigint, p_user text, p_cluster text,
	p_job_name text, p_submitted timestamptz, p_restart_count integer, p_policy jsonb)
returns runs language plpgsql as $$
declare
	r runs;
	provisional_most constant bigint := 1000;
begin
	perform wlb_open_runs_check(p_job_id, p_uid, p_user);
	if p_submitted is null and (select count(*) from runs where uid = p_uid and not confirmed
			and state in ('starting', 'running', 'restarting')) >= provisional_most then
		raise exception using errcode = 'WL503', message = format(
			'job %s: user %s has %s open runs of jobs that Slurm has not confirmed, the most there can be; try again when '
			'slurmctld answers', p_job_id, p_user, provisional_most);
	end if;
	insert into runs (name, job_id, launch, uid, user_name, cluster, job_name, submitted_at, restart_count, policy,
		confirmed)
	values (p_job_id || case when p_launch > 1 then '.' || p_launch else '' end, p_job_id, p_launch, p_uid, p_user,
		p_cluster, p_job_name, p_submitted, p_restart_count, p_policy, p_submitted is not null)
	returning * into r;
	return r;
end $$;

create or replace function wlb_attempt_create(p_run bigint, p_uuid uuid) returns attempts language plpgsql as $$
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
	-- An attempt that begins says that the run is not over, unless its launcher said so.
	if wlb_run_is_over(r.state) and r.ended_by is distinct from 'launcher' then
		perform wlb_open_runs_check(r.job_id, r.uid, r.user_name);
	end if;
	insert into attempts (run_id, number, uuid) values (p_run, newest + 1, p_uuid) returning * into a;
	update runs set state = case when a.number = 1 then 'starting' else 'restarting' end, reason = '',
		ended_by = null, ended_at = null
	where id = p_run and ended_by is distinct from 'launcher';
	return a;
end $$;
