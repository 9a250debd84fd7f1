-- Everything wlbd writes, one call a request: a function is one statement and so one transaction.
-- SQLSTATE WL403, WL404 and WL409 are the HTTP status of the reply, with the message for the user.

-- ---- runs and attempts ---------------------------------------------------------------------------------------

create function wlb_run_newest(p_name text) returns runs language plpgsql stable as $$
declare
	r runs;
begin
	select * into r from runs where name = p_name order by id desc limit 1;
	if r.id is null then
		raise exception using errcode = 'WL404', message = format('no run %s; wlb runs lists them', p_name);
	end if;
	return r;
end $$;

-- The same for one who wants to act on it; p_uid null: an administrator.
create function wlb_run_actable(p_name text, p_uid bigint) returns runs language plpgsql stable as $$
declare
	r runs := wlb_run_newest(p_name);
begin
	if p_uid is not null and r.uid <> p_uid then
		raise exception using errcode = 'WL403', message = format('run %s belongs to another user', p_name);
	end if;
	return r;
end $$;

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

create function wlb_run_create(p_job_id bigint, p_launch integer, p_uid bigint, p_user text, p_cluster text,
	p_job_name text, p_submitted timestamptz, p_restart_count integer, p_policy jsonb)
returns runs language plpgsql as $$
declare
	r runs;
begin
	insert into runs (name, job_id, launch, uid, user_name, cluster, job_name, submitted_at, restart_count, policy)
	values (p_job_id || case when p_launch > 1 then '.' || p_launch else '' end, p_job_id, p_launch, p_uid, p_user,
		p_cluster, p_job_name, p_submitted, p_restart_count, p_policy)
	returning * into r;
	return r;
end $$;

-- Finds or makes the run that a job announces. p_launch is null when the plugin asks.
create function wlb_run_announce(p_job_id bigint, p_launch integer, p_uid bigint, p_user text, p_cluster text,
	p_job_name text, p_submitted timestamptz, p_restart_count integer, p_policy jsonb)
returns runs language plpgsql as $$
declare
	r runs;
	over boolean;
begin
	select * into r from runs where job_id = p_job_id order by id desc limit 1;
	if r.id is null or wlb_job_is_another(r, p_uid, p_submitted, p_restart_count) then
		return wlb_run_create(p_job_id, 1, p_uid, p_user, p_cluster, p_job_name, p_submitted, p_restart_count, p_policy);
	end if;
	if r.uid <> p_uid then
		raise exception using errcode = 'WL403', message = format('run %s belongs to another user', r.name);
	end if;
	over := r.state in ('complete', 'failed', 'out_of_nodes', 'cancelled');
	if over and p_launch is not null and p_restart_count <= r.restart_count then
		return wlb_run_create(p_job_id, r.launch + 1, p_uid, p_user, p_cluster, p_job_name,
			coalesce(p_submitted, r.submitted_at), p_restart_count, p_policy);
	end if;
	if over and p_launch is not null then -- requeued: the script begins again, and so does its p_launch-th run
		select * into r from runs where job_id = p_job_id and launch <= p_launch
			and submitted_at is not distinct from r.submitted_at order by launch desc limit 1;
	end if;
	update runs set
		submitted_at = coalesce(runs.submitted_at, p_submitted),
		restart_count = greatest(runs.restart_count, p_restart_count),
		job_name = case when p_job_name <> '' then p_job_name else runs.job_name end,
		cluster = case when p_cluster <> '' then p_cluster else runs.cluster end,
		policy = runs.policy || p_policy,
		state = case when over and p_restart_count > runs.restart_count and p_launch is not null
			then 'restarting' else runs.state end,
		ended_by = case when over and p_restart_count > runs.restart_count and p_launch is not null
			then null else runs.ended_by end,
		ended_at = case when over and p_restart_count > runs.restart_count and p_launch is not null
			then null else runs.ended_at end
	where id = r.id returning * into r;
	return r;
end $$;

-- What wlbd keeps in memory of an attempt.
create function wlb_attempt_card(p_attempt bigint) returns json language sql stable as $$
	select json_build_object('run_pk', r.id, 'run', r.name, 'job_id', r.job_id, 'uid', r.uid,
		'attempt_pk', a.id, 'attempt', a.number, 'attempt_id', a.uuid, 'state', a.state, 'reason', a.reason,
		'slurm_step', a.slurm_step, 'nodes', to_json(a.nodes))
	from attempts a join runs r on r.id = a.run_id where a.id = p_attempt
$$;

create function wlb_attempt_find(p_uuid uuid) returns json language sql stable as $$
	select wlb_attempt_card(id) from attempts where uuid = p_uuid
$$;

create function wlb_attempts_open() returns json language sql stable as $$
	select coalesce(json_agg(wlb_attempt_card(a.id) order by a.id), '[]')
	from attempts a join runs r on r.id = a.run_id
	where a.state in ('starting', 'running') and r.state in ('starting', 'running', 'restarting')
$$;

-- What is needed to judge an open run by its Slurm job.
create function wlb_runs_open() returns json language sql stable as $$
	select coalesce(json_agg(json_build_object('run_pk', r.id, 'run', r.name, 'job_id', r.job_id, 'uid', r.uid,
		'min_nodes', coalesce((r.policy->>'min_nodes')::integer, 0),
		'total_nodes', coalesce(cardinality(a.nodes) + cardinality(a.spares), 0),
		'resized', exists (select from events e where e.attempt_id = a.id and e.kind = 'job_resized'),
		'attempt_pk', a.id,
		'lost_nodes', (select count(distinct node) from faults f where f.attempt_id = a.id and f.kind = 'node_lost'),
		'complete', coalesce(a.state = 'complete', false)) order by r.id), '[]')
	from runs r
	left join lateral (select * from attempts where run_id = r.id order by number desc limit 1) a on true
	where r.state in ('starting', 'running', 'restarting')
$$;

create function wlb_attempt_create(p_run bigint, p_uuid uuid) returns attempts language plpgsql as $$
declare
	a attempts;
begin
	insert into attempts (run_id, number, uuid)
	select p_run, coalesce(max(number), 0) + 1, p_uuid from attempts where run_id = p_run
	returning * into a;
	-- An attempt that begins says that the run is not over, unless its launcher said so.
	update runs set state = case when a.number = 1 then 'starting' else 'restarting' end, reason = '',
		ended_by = null, ended_at = null
	where id = p_run and ended_by is distinct from 'launcher';
	return a;
end $$;

-- An attempt that began while wlbd was away, known from its first record or report. The job is announced too.
create function wlb_attempt_ensure(p_name text, p_uuid uuid, p_job_id bigint, p_uid bigint, p_user text,
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
	select * into r from runs where name = p_name order by id desc limit 1;
	if r.id is null or wlb_job_is_another(r, p_uid, p_submitted, p_restart_count) then
		r := wlb_run_create(p_job_id,
			case when p_name ~ '\.[0-9]{1,6}$' then substring(p_name from '\.([0-9]+)$')::integer else 1 end,
			p_uid, p_user, p_cluster, p_job_name, p_submitted, p_restart_count, '{}');
	elsif r.uid <> p_uid then
		raise exception using errcode = 'WL403', message = format('run %s belongs to another user', p_name);
	end if;
	a := wlb_attempt_create(r.id, p_uuid);
	return wlb_attempt_card(a.id);
end $$;

-- What is said first of an attempt's end and is final stays; `lost` and `ended` give way to what is known better.
create function wlb_attempt_end(p_attempt bigint, p_state text, p_exit_code integer, p_reason text, p_time timestamptz)
returns void language sql as $$
	update attempts set
		state = case when state in ('complete', 'failed') then state else p_state end,
		reason = case when p_reason = '' or (reason <> '' and state in ('complete', 'failed')) then reason
			else p_reason end,
		exit_code = coalesce(p_exit_code, exit_code),
		ended_at = coalesce(ended_at, p_time)
	where id = p_attempt
$$;

-- What broke an attempt, once it is known: it says more than the exit code that the launcher saw.
create function wlb_attempt_blame(p_attempt bigint, p_reason text, p_time timestamptz) returns void language sql as $$
	update attempts set state = 'failed', reason = p_reason, ended_at = coalesce(ended_at, p_time)
	where id = p_attempt and state <> 'complete'
$$;

-- p_attempt: the last attempt of the launcher that says so, where it tells; a launcher that Slurm has replaced by
-- another (the job was requeued) no longer speaks for the run.
create function wlb_run_end_by(p_name text, p_uid bigint, p_attempt uuid, p_state text, p_reason text)
returns text language plpgsql as $$
declare
	r runs := wlb_run_actable(p_name, p_uid);
begin
	if p_attempt is not null and exists (select from attempts where run_id = r.id and launched and number > (
			select number from attempts where uuid = p_attempt)) then
		raise exception using errcode = 'WL409', message = format(
			'attempt %s is not the newest of run %s: another wlb run goes on with it', p_attempt, p_name);
	end if;
	return wlb_run_end(r.id, p_state, p_reason, 'launcher');
end $$;

create function wlb_run_end(p_run bigint, p_state text, p_reason text, p_by text) returns text language plpgsql as $$
declare
	result text;
begin
	update runs set state = p_state, reason = p_reason, ended_by = p_by, ended_at = coalesce(ended_at, now())
	where id = p_run and (ended_by is null or (p_by = 'launcher' and ended_by <> 'launcher'));
	perform wlb_attempt_end(id, case when p_state = 'complete' then 'complete' else 'lost' end, null, '', now())
	from attempts where run_id = p_run and state in ('starting', 'running');
	select state into result from runs where id = p_run;
	return result;
end $$;

-- ---- the next attempt ------------------------------------------------------------------------------------------

-- The step of an attempt has ended, by the word of its launcher.
create function wlb_attempt_exited(p_attempt bigint, p_exit_code integer, p_slurm_step text, p_time timestamptz)
returns void language sql as $$
	update attempts set slurm_step = coalesce(p_slurm_step, slurm_step) where id = p_attempt;
	select wlb_attempt_end(p_attempt, case p_exit_code when 0 then 'complete' when 75 then 'ended' else 'failed' end,
		p_exit_code, '', p_time)
$$;

-- What the decision needs to know of the past. `fruitless`: how many attempts in a row, the newest first, ended
-- without one new step and without a lost node.
create function wlb_run_history(p_name text, p_uuid uuid) returns json language plpgsql stable as $$
declare
	r runs := wlb_run_newest(p_name);
begin
	return (with ended as (
		select a.number, a.new_steps = 0 and not exists (
			select from faults f where f.attempt_id = a.id and f.kind = 'node_lost') as fruitless
		from attempts a where a.run_id = r.id and a.uuid <> p_uuid and a.state <> 'complete'
	), node_faults as (
		select node, count(*) as faults from faults
		where run_id = r.id and node is not null and cause and kind <> 'step_failed' group by node
	), newest as (
		select step, path from checkpoints where run_id = r.id order by step desc, id desc limit 1
	)
	select json_build_object(
		'run_pk', r.id, 'uid', r.uid, 'job_id', r.job_id, 'state', r.state, 'reason', r.reason,
		'closed', coalesce(r.ended_by = 'launcher', false),
		'attempts', (select count(*) from attempts where run_id = r.id),
		'decision', (select decision from attempts where uuid = p_uuid),
		'newest', (select uuid from attempts where run_id = r.id and launched order by number desc limit 1),
		'first_total', coalesce((select cardinality(nodes) + cardinality(spares) from attempts
			where run_id = r.id and launched order by number limit 1), 0),
		'fruitless', (select count(*) from ended where number > coalesce(
			(select max(number) from ended where not fruitless), 0)),
		'node_faults', (select coalesce(json_object_agg(node, faults), '{}') from node_faults),
		'checkpoint', (select json_build_object('step', step, 'path', path) from newest)));
end $$;

-- Stores a decision to start; asked again with the same attempt_id, the first one stands.
create function wlb_attempt_start(p_run bigint, p_uuid uuid, p_decision jsonb, p_policy jsonb)
returns json language plpgsql as $$
declare
	a attempts;
	layout jsonb := p_decision->'layout';
begin
	select * into a from attempts where uuid = p_uuid;
	if a.id is null then
		a := wlb_attempt_create(p_run, p_uuid);
	end if;
	if a.decision is null then
		update attempts set
			launched = true,
			decision = p_decision || jsonb_build_object('attempt', a.number),
			nodes = array(select jsonb_array_elements_text(p_decision->'nodes')),
			spares = array(select jsonb_array_elements_text(p_decision->'spares')),
			tp = (layout->>'tp')::integer, cp = (layout->>'cp')::integer,
			pp = (layout->>'pp')::integer, dp = (layout->>'dp')::integer,
			resumed_step = (p_decision->'checkpoint'->>'step')::bigint,
			checkpoint_path = p_decision->'checkpoint'->>'path'
		where id = a.id;
		update runs set policy = policy || p_policy where id = p_run;
		-- Of an older attempt that is still open nobody will tell the end: its launcher was replaced.
		perform wlb_attempt_end(id, 'lost', null, format('attempt %s has begun', a.number), now())
		from attempts where run_id = p_run and number < a.number and state in ('starting', 'running');
	end if;
	return json_build_object('card', wlb_attempt_card(a.id), 'decision',
		(select decision from attempts where id = a.id));
end $$;

-- ---- faults and events -------------------------------------------------------------------------------------------

-- The first fault of an attempt is its cause. `step_failed` says only that the step ended: whatever is found out
-- later takes its place as the cause.
create function wlb_fault_add(p_attempt bigint, p_kind text, p_rank integer, p_node text, p_step bigint, p_detail text,
	p_evidence jsonb, p_time timestamptz)
returns void language plpgsql as $$
begin
	if p_kind <> 'step_failed' then
		update faults set cause = false where attempt_id = p_attempt and cause and kind = 'step_failed';
	end if;
	insert into faults (run_id, attempt_id, kind, rank, node, step, detail, evidence, detected_at, cause)
	select run_id, id, p_kind, p_rank, p_node, p_step, p_detail, p_evidence, p_time,
		not exists (select from faults where attempt_id = p_attempt and cause)
	from attempts where id = p_attempt
	on conflict (attempt_id, kind, coalesce(node, ''), coalesce(rank, -1))
		where kind in ('rank_lost', 'node_lost', 'step_failed') do nothing;
end $$;

create function wlb_event_add(p_run bigint, p_attempt bigint, p_kind text, p_detail text, p_time timestamptz)
returns void language sql as $$
	insert into events (run_id, attempt_id, kind, detail, recorded_at)
	select p_run, p_attempt, p_kind, p_detail, p_time
	where not exists (select from events -- told twice, it is still one event
		where run_id = p_run and kind = p_kind and detail = p_detail and recorded_at = p_time)
$$;

-- ---- records -------------------------------------------------------------------------------------------------------

-- Its processes are there: rank 0 tells it, and the launcher, for commands that record nothing themselves.
create function wlb_attempt_begun(a attempts, p_time timestamptz) returns void language sql as $$
	update attempts set state = case when state = 'starting' then 'running' else state end,
		started_at = coalesce(started_at, p_time)
	where id = a.id;
	update runs set state = case when state in ('starting', 'restarting') then 'running' else state end,
		started_at = coalesce(started_at, p_time)
	where id = a.run_id;
$$;

create function wlb_record_attempt(a attempts, d jsonb, p_time timestamptz) returns void language plpgsql as $$
begin
	perform wlb_attempt_begun(a, p_time);
	update attempts set
		tp = (d->'layout'->>'tp')::integer, cp = (d->'layout'->>'cp')::integer,
		pp = (d->'layout'->>'pp')::integer, dp = (d->'layout'->>'dp')::integer,
		world_size = (d->>'world_size')::integer, dtype = d->>'dtype', device = d->>'device',
		resumed_step = (d->>'resumed_step')::bigint, checkpoint_path = d->>'checkpoint',
		nodes = (select array_agg(node order by first) from (
			select m->>'node' as node, min((m->>'rank')::integer) as first
			from jsonb_array_elements(d->'rank_map') m group by m->>'node') as used)
	where id = a.id;
	insert into rank_map (attempt_id, rank, node, local_rank)
	select a.id, (m->>'rank')::integer, m->>'node', (m->>'local_rank')::integer
	from jsonb_array_elements(d->'rank_map') m
	on conflict (attempt_id, rank) do update set node = excluded.node, local_rank = excluded.local_rank;
	update runs set model = d->'model', seq_length_tokens = (d->>'seq_length')::bigint,
		global_batch_size = (d->>'global_batch_size')::bigint, train_iters = (d->>'train_iters')::bigint
	where id = a.run_id;
end $$;

-- The newest attempt's row of a step is the one in `steps`; every other is kept in steps_superseded.
create function wlb_record_step(a attempts, d jsonb, p_time timestamptz) returns void language plpgsql as $$
declare
	holder integer;
	new steps;
begin
	new := (a.run_id, (d->>'step')::bigint, a.id, (d->>'loss')::float8, (d->>'grad_norm')::float8, (d->>'lr')::float8,
		(d->>'tokens')::bigint, (d->>'documents')::bigint, (d->>'step_time_s')::float8, (d->>'tokens_per_s')::float8,
		(d->>'held_tokens')::bigint, (d->>'predicted_imbalance')::float8, (d->>'imbalance')::float8, d->'parts',
		p_time)::steps;
	select h.number into holder from steps s join attempts h on h.id = s.attempt_id
	where s.run_id = a.run_id and s.step = new.step;
	if holder > a.number then
		insert into steps_superseded select new.*;
		return;
	end if;
	with old as (
		insert into steps_superseded select * from steps where run_id = a.run_id and step = new.step
	)
	insert into steps select new.*
	on conflict (run_id, step) do update set attempt_id = excluded.attempt_id, loss = excluded.loss,
		grad_norm = excluded.grad_norm, learning_rate = excluded.learning_rate, tokens = excluded.tokens,
		documents = excluded.documents, step_time_s = excluded.step_time_s, tokens_per_s = excluded.tokens_per_s,
		held_tokens = excluded.held_tokens, predicted_imbalance = excluded.predicted_imbalance,
		imbalance = excluded.imbalance, parts = excluded.parts, recorded_at = excluded.recorded_at;
	if holder is null then
		update attempts set new_steps = new_steps + 1 where id = a.id;
	end if;
end $$;

create function wlb_record_attempt_end(a attempts, p_source text, d jsonb, p_time timestamptz)
returns void language plpgsql as $$
declare
	newest boolean := not exists (select from attempts where run_id = a.run_id and number > a.number);
begin
	perform wlb_attempt_end(a.id, d->>'state', (d->>'exit_code')::integer, coalesce(d->>'reason', ''), p_time);
	-- Without `wlb run` nobody else says how the run ended. With it, this corrects what wlbd had to guess.
	if newest and (d->>'state') in ('complete', 'failed') then
		update runs set state = d->>'state', reason = coalesce(d->>'reason', ''), ended_by = 'attempt',
			ended_at = coalesce(ended_at, p_time)
		where id = a.run_id and ended_by is distinct from 'launcher'
			and (not a.launched or (ended_by = 'coordinator' and (d->>'state') = 'complete'));
	end if;
end $$;

create function wlb_record(a attempts, p_source text, p_record jsonb) returns void language plpgsql as $$
declare
	d jsonb := p_record->'data';
	at timestamptz := to_timestamp((p_record->>'time')::float8);
begin
	case p_record->>'type'
	when 'attempt' then
		perform wlb_record_attempt(a, d, at);
	when 'step' then
		perform wlb_record_step(a, d, at);
	when 'checkpoint' then
		insert into checkpoints (run_id, attempt_id, step, path, size_bytes, duration_s, recorded_at)
		values (a.run_id, a.id, (d->>'step')::bigint, d->>'path', (d->>'bytes')::bigint, (d->>'duration_s')::float8, at);
	when 'fault' then
		perform wlb_fault_add(a.id, d->>'kind', (d->>'rank')::integer, d->>'node', (d->>'step')::bigint,
			coalesce(d->>'detail', ''), d->'evidence', at);
	when 'event' then
		if d->>'kind' = 'step_started' then
			perform wlb_attempt_begun(a, at);
		end if;
		perform wlb_event_add(a.run_id, a.id, d->>'kind', coalesce(d->>'detail', ''), at);
	when 'attempt_end' then
		perform wlb_record_attempt_end(a, p_source, d, at);
	end case;
end $$;

-- Stores the records of one request that are not stored yet. The sequence number moves in the same transaction.
create function wlb_deliver(p_attempt bigint, p_source text, p_body jsonb) returns json language plpgsql as $$
declare
	a attempts;
	stored bigint;
	record jsonb;
begin
	select * into strict a from attempts where id = p_attempt;
	insert into sources (attempt_id, source) values (p_attempt, p_source) on conflict do nothing;
	select last_seq into stored from sources where attempt_id = p_attempt and source = p_source for update;
	if (p_body->>'first_seq')::bigint > stored + 1 then
		return json_build_object('acked_seq', stored, 'gap', true);
	end if;
	for record in select value from jsonb_array_elements(p_body->'records') where (value->>'seq')::bigint > stored loop
		perform wlb_record(a, p_source, record);
		stored := (record->>'seq')::bigint;
	end loop;
	update sources set last_seq = stored, updated_at = now() where attempt_id = p_attempt and source = p_source;
	return json_build_object('acked_seq', stored, 'gap', false);
end $$;
