-- Ownership of runs. A run is confirmed once Slurm has said that its job exists and who owns it. Until then it is
-- provisional: it belongs to the account that announced it, wlbd does nothing to nodes or jobs for it, and it hides no
-- other run.
--
-- Replaces wlb_run_newest, wlb_run_actable, wlb_run_readable, wlb_run_create, wlb_attempt_ensure and wlb_attempt_card.
-- Adds wlb_run_meant, wlb_run_confirm and wlb_runs_provisional.

alter table runs add column confirmed boolean not null default false;
update runs set confirmed = true where submitted_at is not null;
create index on runs (uid) where not confirmed and state in ('starting', 'running', 'restarting');

-- ---- which run a name means -----------------------------------------------------------------------------------

-- The newest run of the name that is confirmed or the asker's own; if there is none, for an administrator, any other.
-- All columns are null if there is no run.
create function wlb_run_meant(p_name text, p_uid bigint, p_admin boolean) returns runs language sql stable as $$
	select * from runs where name = p_name and (confirmed or uid = p_uid or p_admin)
	order by (confirmed or uid is not distinct from p_uid) desc, id desc limit 1
$$;

-- The same, but raises WL404 if there is no run.
create function wlb_run_found(p_name text, p_uid bigint, p_admin boolean) returns runs language plpgsql stable as $$
declare
	r runs := wlb_run_meant(p_name, p_uid, p_admin);
begin
	if r.id is null then
		raise exception using errcode = 'WL404', message = format('no run %s; wlb runs lists them', p_name);
	end if;
	return r;
end $$;

create or replace function wlb_run_newest(p_name text) returns runs language sql stable as $$
	select wlb_run_found(p_name, null, true)
$$;

-- The run, for an account that is going to change it; p_uid null: an administrator.
create or replace function wlb_run_actable(p_name text, p_uid bigint) returns runs language plpgsql stable as $$
declare
	r runs := wlb_run_found(p_name, p_uid, p_uid is null);
begin
	if p_uid is not null and r.uid <> p_uid then
		raise exception using errcode = 'WL403', message = format('run %s belongs to another user', p_name);
	end if;
	return r;
end $$;

drop function wlb_run_readable(text, bigint);

-- p_uid null: the caller, p_asker, may read everything; then the owner is not checked.
create function wlb_run_readable(p_name text, p_uid bigint, p_asker bigint) returns runs language plpgsql stable as $$
declare
	r runs := wlb_run_found(p_name, coalesce(p_uid, p_asker), p_uid is null);
begin
	if p_uid is not null and r.uid <> p_uid then
		raise exception using errcode = 'WL403', message = format(
			'run %s belongs to another user, and private_data hides it; ask %s or an administrator', p_name, r.user_name);
	end if;
	return r;
end $$;

-- ---- announcing -------------------------------------------------------------------------------------------------

-- p_submitted null, here and below: Slurm did not answer or does not know the job, and p_uid is the account that asks.
create or replace function wlb_run_create(p_job_id bigint, p_launch integer, p_uid bigint, p_user text, p_cluster text,
	p_job_name text, p_submitted timestamptz, p_restart_count integer, p_policy jsonb)
returns runs language plpgsql as $$
declare
	r runs;
	provisional_most constant bigint := 1000;
begin
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

-- Ids of the open runs that are not confirmed by Slurm yet.
create function wlb_runs_provisional() returns json language sql stable as $$
	select coalesce(json_agg(id order by id), '[]')
	from runs where not confirmed and state in ('starting', 'running', 'restarting')
$$;

-- ---- attempts ---------------------------------------------------------------------------------------------------

-- The data of an attempt that wlbd keeps in memory. rank_nodes: the node of each rank, null until rank 0 has recorded
-- them.
create or replace function wlb_attempt_card(p_attempt bigint) returns json language sql stable as $$
	select json_build_object('run_pk', r.id, 'run', r.name, 'job_id', r.job_id, 'uid', r.uid,
		'confirmed', r.confirmed, 'attempt_pk', a.id, 'attempt', a.number, 'attempt_id', a.uuid, 'state', a.state,
		'reason', a.reason, 'slurm_step', a.slurm_step, 'nodes', to_json(a.nodes),
		'world_size', coalesce(a.world_size,
			cardinality(a.nodes) * (a.decision->>'tasks_per_node')::integer),
		'rank_nodes', (select json_agg(node order by rank) from rank_map where attempt_id = a.id
			having max(rank) = count(*) - 1))
	from attempts a join runs r on r.id = a.run_id where a.id = p_attempt
$$;

-- An attempt that began while wlbd was away, known from its first record or report. The job is announced too.
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
	end if;
	a := wlb_attempt_create(r.id, p_uuid);
	-- Beyond this number of attempts without an end, the oldest are ended: the number of open attempts bounds memory.
	update attempts set state = 'lost', reason = format('attempt %s has begun', a.number), ended_at = now()
	where run_id = r.id and number <= a.number - 64 and state in ('starting', 'running');
	return wlb_attempt_card(a.id);
end $$;

-- ---- the next attempt -------------------------------------------------------------------------------------------

