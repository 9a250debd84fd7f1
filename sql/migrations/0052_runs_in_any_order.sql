-- The runs of one job may begin in another order after a requeue: `wlb run` finds its number by its command. A run that has begun
-- already was marked as one that the script had not come to, and a first run that came after the end of a later one was taken for a
-- new one.
--
-- Replaces: function wlb_run_announce.

-- The p_launch-th run of a script that has begun again is its p_launch-th run of before, also where the script had come
-- further: to a later run, which may be open still, or which may have begun or ended before it in this start. Where the run is over
-- in the same start of the job, the launcher has no right count of its launches, and continues the newest run. p_working: the job's
-- runs whose launchers work; a later launcher of the same start has a run of its own then, and else continues the run of one that
-- was killed.
create or replace function wlb_run_announce(p_job_id bigint, p_launch integer, p_uid bigint, p_user text, p_cluster text,
	p_job_name text, p_submitted timestamptz, p_restart_count integer, p_policy jsonb,
	p_working bigint[])
returns runs language plpgsql as $$
declare
	r runs;
	same runs;
	over boolean;
	again boolean;
begin
	select * into r from runs where job_id = p_job_id and (uid = p_uid or (confirmed and p_submitted is not null))
	order by id desc limit 1;
	if r.id is null or wlb_job_is_another(r, p_uid, p_submitted, p_restart_count) then
		return wlb_run_create(p_job_id, 1, p_uid, p_user, p_cluster, p_job_name, p_submitted, p_restart_count, p_policy);
	end if;
	over := wlb_run_is_over(r.state);
	if p_launch is not null and p_restart_count <= r.restart_count and (over or (p_launch > r.launch and r.id = any(p_working)))
		and not (p_launch < r.launch and exists (select from runs o where o.job_id = p_job_id and o.uid = r.uid
			and o.launch = p_launch and o.submitted_at is not distinct from r.submitted_at
			and o.restart_count < p_restart_count)) then
		-- Slurm gives a job that is requeued another time of submission; runs of one job have the first.
		return wlb_run_create(p_job_id, r.launch + 1, p_uid, p_user, p_cluster, p_job_name,
			coalesce(r.submitted_at, p_submitted), p_restart_count, p_policy);
	end if;
	if p_launch is not null and (over or p_launch < r.launch) then
		select * into same from runs where job_id = p_job_id and uid = r.uid and launch <= p_launch
			and submitted_at is not distinct from r.submitted_at order by launch desc limit 1;
		if same.id is not null and (not wlb_run_is_over(same.state) or p_restart_count > same.restart_count) then
			update runs set is_not_reached = true where job_id = p_job_id and uid = r.uid and launch > same.launch
				and submitted_at is not distinct from r.submitted_at and not wlb_run_is_over(state)
				and id <> all (coalesce(p_working, '{}'));
			r := same;
			over := wlb_run_is_over(r.state);
		end if;
	end if;
	again := over and p_restart_count > r.restart_count and p_launch is not null;
	update runs set
		confirmed = runs.confirmed or p_submitted is not null,
		submitted_at = coalesce(runs.submitted_at, p_submitted),
		-- When a requeued job begins the plugin announces it first; the requeue must still be visible when `wlb run` asks.
		restart_count = case when over and p_launch is null then runs.restart_count
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

-- The script has come to a run of which an attempt begins, whatever another launcher announced between its own announcement and that.
create function wlb_run_is_reached() returns trigger language plpgsql as $$
begin
	update runs set is_not_reached = false where id = new.run_id and is_not_reached;
	return null;
end $$;
create trigger attempts_run_is_reached after insert on attempts for each row execute function wlb_run_is_reached();
