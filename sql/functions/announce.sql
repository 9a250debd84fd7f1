-- The runs of a job: which one the `wlb run` that announces itself makes or continues.

-- Statements of one job that find or make its runs wait for each other, whoever sends them.
create function wlb_job_lock(p_job_id bigint) returns void language sql as $$
	select pg_advisory_xact_lock((x'574c'::bigint << 48) + p_job_id)
$$;

-- Whether the job that announces itself is another one than the job of `r`, though its id is the same: the
-- controller's state was wiped in between. A requeued job keeps its run, but Slurm gives it a new submit time.
create function wlb_job_is_another(r runs, p_uid bigint, p_submitted timestamptz, p_restart_count integer)
returns boolean language sql immutable as $$
	select case
		when r.submitted_at is null then r.uid <> p_uid and p_submitted is not null
		when p_submitted is null then false
		when r.uid <> p_uid then true
		else p_restart_count = 0 and r.submitted_at <> p_submitted
	end
$$;

-- Whether the job has started again since the launcher of `r` began. A plain srun announces itself without a launcher.
create function wlb_launch_is_later(r runs, p_launcher uuid, p_start integer, p_restart_count integer)
returns boolean language sql immutable as $$
	select case when r.launcher is null or p_launcher is null then p_restart_count > r.restart_count
		else p_start > r.launcher_start end
$$;

-- The runs of the job of `r`; an earlier job may have had its id. Slurm gives a job that is requeued another time of submission;
-- its runs have the first, or none until Slurm was asked.
create function wlb_runs_of_job(r runs) returns setof runs language sql stable as $$
	select * from runs where job_id = r.job_id and uid = r.uid
		and (submitted_at = r.submitted_at or submitted_at is null or r.submitted_at is null)
$$;

-- Whether `r`, which has the launcher's number, is another launcher's of the same start of the job, or is over in it. Attempts of a
-- run without a launcher are those of a plain srun, or of a launcher that records what it began while wlbd was unavailable.
create function wlb_run_is_of_another(r runs, p_launcher uuid, p_start integer, p_restart_count integer)
returns boolean language sql stable as $$
	select not wlb_launch_is_later(r, p_launcher, p_start, p_restart_count) and case
		when p_launcher is null then wlb_run_is_over(r.state)
		when r.launcher is null then wlb_run_is_over(r.state)
			or (p_restart_count = 0 and exists (select from attempts where run_id = r.id))
		else p_start = r.launcher_start
	end
$$;

-- The run, of the job of `newest`, that the launcher's is, or which it continues after a requeue; null: it has none yet.
create function wlb_run_of_launch(newest runs, p_launch integer, p_launcher uuid, p_start integer, p_restart_count integer)
returns runs language plpgsql stable as $$
declare
	r runs;
begin
	select * into r from wlb_runs_of_job(newest) o where o.launcher = p_launcher
		or (o.launcher is null and exists (select from attempts where run_id = o.id and uuid = p_launcher)) order by o.id desc limit 1;
	if r.id is null then
		select * into r from wlb_runs_of_job(newest) o where o.launch = p_launch
			and not wlb_run_is_of_another(o, p_launcher, p_start, p_restart_count) order by o.id desc limit 1;
	end if;
	return r;
end $$;

-- Raises where the job has as many open runs of its user, or the user as many in all, as there can be. Statements of different jobs
-- may find the same number at once, so that a few more are made.
create function wlb_open_runs_check(p_job_id bigint, p_uid bigint, p_user text) returns void language plpgsql as $$
declare
	of_job bigint;
	of_user bigint;
	of_job_max constant bigint := 1024;
	of_user_max constant bigint := 4096;
begin
	select count(*) filter (where job_id = p_job_id), count(*) into of_job, of_user from runs
	where uid = p_uid and state in ('starting', 'running', 'restarting');
	if of_job >= of_job_max then
		raise exception using errcode = 'WL503', message = format(
			'job %s: has %s open runs, and can have %s; try again when one of them has ended', p_job_id, of_job, of_job_max);
	elsif of_user >= of_user_max then
		raise exception using errcode = 'WL503', message = format(
			'job %s: user %s has %s open runs, and can have %s; try again when one of them has ended', p_job_id, p_user,
			of_user, of_user_max);
	end if;
end $$;

-- Two statements that both found no such run make one.
create function wlb_run_create(p_job_id bigint, p_launch integer, p_uid bigint, p_user text, p_cluster text,
	p_job_name text, p_submitted timestamptz, p_restart_count integer, p_policy jsonb)
returns runs language plpgsql as $$
declare
	r runs;
	provisional_max constant bigint := 1000;
begin
	perform wlb_job_lock(p_job_id);
	select * into r from runs where job_id = p_job_id and launch = p_launch and uid = p_uid
		and submitted_at is not distinct from p_submitted order by id desc limit 1;
	if r.id is not null then
		return r;
	end if;
	perform wlb_open_runs_check(p_job_id, p_uid, p_user);
	if p_submitted is null and (select count(*) from runs where uid = p_uid and not confirmed
			and state in ('starting', 'running', 'restarting')) >= provisional_max then
		raise exception using errcode = 'WL503', message = format(
			'job %s: user %s has %s open runs of jobs that Slurm has not confirmed, the most there can be; try again when '
			'slurmctld answers', p_job_id, p_user, provisional_max);
	end if;
	insert into runs (name, job_id, launch, uid, user_name, cluster, job_name, submitted_at, restart_count, policy,
		confirmed)
	values (p_job_id || case when p_launch > 1 then '.' || p_launch else '' end, p_job_id, p_launch, p_uid, p_user,
		p_cluster, p_job_name, p_submitted, p_restart_count, p_policy, p_submitted is not null)
	returning * into r;
	return r;
end $$;

-- The p_launch-th run of a script that has begun again is its p_launch-th run of before, also where the script had come
-- further: to a later run, which may be open still, or which may have begun or ended before it in this start. Where the run is over
-- in the same start of the job, the launcher has no right count of its launches, and continues the newest run. A later launcher of the
-- same start has a run of its own.
create function wlb_run_announce(p_job_id bigint, p_launch integer, p_launcher uuid, p_start integer, p_uid bigint, p_user text,
	p_cluster text, p_job_name text, p_submitted timestamptz, p_restart_count integer, p_policy jsonb)
returns runs language plpgsql as $$
declare
	newest runs;
	r runs;
	number integer := coalesce(p_launch, 1);
	submitted timestamptz := p_submitted;
	start integer := least(p_start, p_restart_count);
	number_max constant integer := 999999;
	is_later boolean;
	again boolean;
begin
	perform wlb_job_lock(p_job_id);
	select * into newest from runs where job_id = p_job_id and (uid = p_uid or (confirmed and p_submitted is not null))
	order by id desc limit 1;
	if newest.id is not null and not wlb_job_is_another(newest, p_uid, p_submitted, p_restart_count) then
		r := newest;
		submitted := coalesce(newest.submitted_at, p_submitted);
		if p_launch is not null then
			r := wlb_run_of_launch(newest, p_launch, p_launcher, start, p_restart_count);
			select case when bool_or(launch = p_launch) then max(launch) + 1 else p_launch end into number
			from wlb_runs_of_job(newest);
		end if;
		if r.id is null and number > number_max then
			raise exception using errcode = 'WL409', message = format(
				'job %s: has a run of number %s, the greatest there can be; submit a new job', p_job_id, number_max);
		end if;
	end if;
	if r.id is null then
		r := wlb_run_create(p_job_id, number, p_uid, p_user, p_cluster, p_job_name, submitted, p_restart_count, p_policy);
	end if;
	is_later := p_launch is not null and wlb_launch_is_later(r, p_launcher, start, p_restart_count);
	again := is_later and wlb_run_is_over(r.state);
	-- The script, which has begun again, has not come to its later runs.
	update runs set is_not_reached = true where p_launch is not null and launch > r.launch and not wlb_run_is_over(state)
		and id in (select id from wlb_runs_of_job(r))
		and case when launcher is null then is_later else launcher_start < start end;
	update runs set
		confirmed = runs.confirmed or p_submitted is not null,
		submitted_at = coalesce(runs.submitted_at, submitted),
		launcher = case when is_later or runs.launcher is null then coalesce(p_launcher, runs.launcher) else runs.launcher end,
		launcher_start = case when p_launcher is not null and (is_later or runs.launcher is null) then start
			else runs.launcher_start end,
		-- When a requeued job begins the plugin announces it first; the requeue must still be visible when `wlb run` asks.
		restart_count = case when wlb_run_is_over(runs.state) and p_launch is null then runs.restart_count
			else greatest(runs.restart_count, p_restart_count) end,
		is_not_reached = runs.is_not_reached and p_launch is null,
		job_name = case when p_job_name <> '' then p_job_name else runs.job_name end,
		cluster = case when p_cluster <> '' then p_cluster else runs.cluster end,
		policy = runs.policy || p_policy,
		state = case when again then 'restarting' else runs.state end,
		ended_by = case when again then null else runs.ended_by end,
		ended_at = case when again then null else runs.ended_at end
	where id = r.id returning * into r;
	return r;
end $$;

-- What Slurm says of the job of a run. p_job: the job as Slurm shows it, where that is not its id; ids restart when a controller's state is
-- deleted: the newest run is meant. A queued job has no GPUs yet. '' and 0: not known, and what is stored stays.
create function wlb_run_job_note(p_run bigint, p_job text, p_account text, p_gpus bigint) returns void language sql as $$
	update runs set alias = coalesce(nullif(p_job, '') || substr(name, length(job_id::text) + 1), alias),
		account = coalesce(nullif(p_account, ''), account), gpu_count = coalesce(nullif(p_gpus, 0), gpu_count)
	where id = p_run
$$;

-- Confirms a run: Slurm knows its job, and the job's owner is the run's.
create function wlb_run_confirm(p_run bigint, p_submitted timestamptz, p_restart_count integer, p_job_name text,
	p_cluster text)
returns void language sql as $$
	update runs set confirmed = true, submitted_at = coalesce(submitted_at, p_submitted),
		restart_count = greatest(restart_count, p_restart_count),
		job_name = case when p_job_name <> '' then p_job_name else job_name end,
		cluster = case when p_cluster <> '' then p_cluster else cluster end
	where id = p_run and not confirmed
$$;
