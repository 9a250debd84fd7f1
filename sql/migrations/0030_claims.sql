-- What a client claims moves neither wlbd's orders to Slurm nor what other users read.
--
-- Replaces: functions wlb_attempt_settle, wlb_fault_insert, wlb_record, wlb_record_attempt, wlb_run_end, wlb_run_set, wlb_run_trim, wlb_runs_open.

-- ---- the nodes of an attempt ---------------------------------------------------------------------------------------

-- Of an attempt that wlbd itself started, rank 0 tells which of its nodes have ranks; it adds none.
create or replace function wlb_record_attempt(a attempts, d jsonb, p_time timestamptz) returns void language plpgsql as $$
declare
	used text[] := (select array_agg(node order by first) from (
		select m->>'node' as node, min((m->>'rank')::integer) as first
		from jsonb_array_elements(d->'rank_map') m
		where a.decision is null or (a.decision->'nodes') ? (m->>'node') group by m->>'node') as named);
begin
	perform wlb_attempt_begun(a, p_time);
	update attempts set
		tp = (d->'layout'->>'tp')::integer, cp = (d->'layout'->>'cp')::integer,
		pp = (d->'layout'->>'pp')::integer, dp = (d->'layout'->>'dp')::integer,
		world_size = (d->>'world_size')::integer, dtype = d->>'dtype', device = d->>'device',
		resumed_step = (d->>'resumed_step')::bigint, checkpoint_path = d->>'checkpoint',
		reported_at = coalesce(reported_at, p_time),
		nodes = coalesce(used, nodes)
	where id = a.id;
	delete from rank_map where attempt_id = a.id and rank >= (d->>'world_size')::integer;
	insert into rank_map (attempt_id, rank, node, local_rank)
	select a.id, (m->>'rank')::integer, m->>'node', (m->>'local_rank')::integer
	from jsonb_array_elements(d->'rank_map') m
	on conflict (attempt_id, rank) do update set node = excluded.node, local_rank = excluded.local_rank;
	update runs set model = d->'model', seq_length_tokens = (d->>'seq_length')::bigint,
		global_batch_size = (d->>'global_batch_size')::bigint, train_iters = (d->>'train_iters')::bigint
	where id = a.run_id;
end $$;

-- The nodes that the job of an attempt gave it, spares included: as wlbd decided, else as its processes say.
create function wlb_attempt_given(a attempts) returns text[] language sql immutable as $$
	select case when a.decision is null then a.nodes || a.spares
		else array(select jsonb_array_elements_text((a.decision->'nodes') || coalesce(a.decision->'spares', '[]'))) end
$$;

-- ---- the range of nodes of a job that is queued again -----------------------------------------------------------------

-- The least nodes on which wlbd has let the job of the attempt start; null: it was not changed. It was read from the events,
-- of which a client may record any.
alter table attempts add column resized_to integer;

update attempts a set resized_to = told.least from (
	select attempt_id, min(substring(detail from 'may start on ([0-9]{1,6}) to')::integer) as least
	from events where kind = 'job_resized' and attempt_id is not null group by attempt_id) as told
where told.attempt_id = a.id and told.least is not null;

create function wlb_job_resized(p_run bigint, p_attempt bigint, p_least integer, p_detail text, p_time timestamptz)
returns void language sql as $$
	update attempts set resized_to = least(resized_to, p_least) where id = p_attempt;
	select wlb_event_add(p_run, p_attempt, 'job_resized', p_detail, p_time)
$$;

-- Removes the oldest records of each kind over its bound, and counts them.
create or replace function wlb_run_trim(p_run bigint) returns void language plpgsql as $$
declare
	events_gone bigint;
	faults_gone bigint;
	checkpoints_gone bigint;
	evidence_gone bigint;
begin
	delete from events where id in (select id from events where run_id = p_run order by id desc offset 10000);
	get diagnostics events_gone = row_count;
	delete from faults where id in (select id from faults where run_id = p_run order by id desc offset 10000);
	get diagnostics faults_gone = row_count;
	delete from checkpoints where id in (
		select id from checkpoints where run_id = p_run order by step desc, id desc offset 10000);
	get diagnostics checkpoints_gone = row_count;
	update faults set evidence = null where id in (
		select id from (
			select id, octet_length(evidence::text) as bytes,
				sum(octet_length(evidence::text)) over (order by id desc) as total
			from faults where run_id = p_run and evidence is not null) as told
		where bytes > 16384 or total > 4194304);
	get diagnostics evidence_gone = row_count;
	if events_gone + faults_gone + checkpoints_gone + evidence_gone > 0 then
		update runs set dropped_events = dropped_events + events_gone, dropped_faults = dropped_faults + faults_gone,
			dropped_checkpoints = dropped_checkpoints + checkpoints_gone,
			dropped_evidence = dropped_evidence + evidence_gone
		where id = p_run;
	end if;
end $$;

-- Only losses that wlbd itself saw count: those that a client records have no such proof.
create or replace function wlb_runs_open() returns json language sql stable as $$
	select coalesce(json_agg(json_build_object('run_pk', r.id, 'run', r.name, 'job_id', r.job_id, 'uid', r.uid,
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

-- ---- reasons -----------------------------------------------------------------------------------------------------------

-- Every reason has 4,096 characters at most, whichever statement writes it: a list of runs has those of all users.
update runs set reason = left(reason, 4096) where length(reason) > 4096;
update attempts set reason = left(reason, 4096), told = left(told, 4096) where length(reason) > 4096 or length(told) > 4096;

create function wlb_run_reason_cut() returns trigger language plpgsql as $$
begin
	new.reason := left(new.reason, 4096);
	return new;
end $$;

create trigger runs_reason_cut before insert or update of reason on runs
	for each row when (length(new.reason) > 4096) execute function wlb_run_reason_cut();

create function wlb_attempt_reason_cut() returns trigger language plpgsql as $$
begin
	new.reason := left(new.reason, 4096);
	new.told := left(new.told, 4096);
	return new;
end $$;

create trigger attempts_reason_cut before insert or update of reason, told on attempts
	for each row when (length(new.reason) > 4096 or length(new.told) > 4096) execute function wlb_attempt_reason_cut();

-- A reason with the first occurrence of a text replaced. All occurrences would multiply the text: a client chooses both.
create function wlb_reason_with(p_reason text, p_old text, p_new text) returns text language sql immutable as $$
	select case when p_old <> '' and strpos(p_reason, p_old) > 0
		then overlay(p_reason placing p_new from strpos(p_reason, p_old) for length(p_old)) else p_reason end
$$;

-- Marks the cause of an attempt, and sets the reasons of attempt and run to it.
create or replace function wlb_attempt_settle(p_attempt bigint) returns void language plpgsql as $$
declare
	a attempts;
	c faults;
	reason_now text;
begin
	perform wlb_attempt_lock(p_attempt);
	select * into a from attempts where id = p_attempt;
	select * into c from faults where id = wlb_attempt_cause(p_attempt);
	if c.id is null then
		return;
	end if;
	update faults set cause = false where attempt_id = p_attempt and cause and id <> c.id;
	update faults set cause = true where id = c.id and not cause;
	reason_now := left(wlb_fault_text(c), 4096);
	if a.state not in ('failed', 'ended', 'lost') or reason_now = a.reason
		or (c.kind = 'step_failed' and a.reason <> '' and not coalesce(c.proof ? 'step_broken', false)) then
		return; -- for a step that failed, its launcher reports more than that
	end if;
	update attempts set reason = reason_now where id = p_attempt;
	update runs set reason = case
		when a.reason <> '' and strpos(reason, a.reason) > 0 then wlb_reason_with(reason, a.reason, reason_now)
		when a.told <> '' and strpos(reason, a.told) > 0 then wlb_reason_with(reason, a.told, reason_now)
		when a.reason = '' and ended_by = 'slurm' then concat_ws('; ', reason_now, nullif(reason, ''))
		else reason end
	where id = a.run_id and ended_at is not null;
end $$;

-- p_by 'slurm': the job is over, and its launcher has not reported how the run ended. The cause of the last attempt
-- is then part of the reason.
create or replace function wlb_run_end(p_run bigint, p_state text, p_reason text, p_by text)
returns text language plpgsql as $$
declare
	last attempts;
	result text;
begin
	perform from runs where id = p_run for no key update;
	perform wlb_attempt_end(id, case when p_state = 'complete' then 'complete' else 'lost' end, null, '', now())
	from attempts where run_id = p_run and state in ('starting', 'running');
	select * into last from attempts where run_id = p_run order by number desc limit 1;
	update runs set state = p_state, ended_by = p_by, ended_at = coalesce(ended_at, now()), reason = case
		when p_by = 'slurm' and p_state <> 'complete'
			then concat_ws('; ', case when last.state <> 'complete' then nullif(last.reason, '') end, p_reason)
		when last.told <> '' and last.reason <> '' then wlb_reason_with(p_reason, last.told, last.reason)
		else p_reason end
	where id = p_run and (ended_by is null or (p_by = 'launcher' and ended_by <> 'launcher'));
	select state into result from runs where id = p_run;
	return result;
end $$;

-- ---- times that clients tell ---------------------------------------------------------------------------------------------

-- Clocks of hosts that MUNGE accepts differ by less than 5 minutes. A time in the years to come would stay the newest of all.
create function wlb_time_told(p_time timestamptz) returns timestamptz language sql stable as $$
	select least(p_time, now() + interval '10 minutes')
$$;

update faults set detected_at = wlb_time_told(detected_at) where detected_at > wlb_time_told(detected_at);

create or replace function wlb_record(a attempts, p_source text, p_record jsonb) returns wlb_added language plpgsql as $$
declare
	d jsonb := p_record->'data';
	at timestamptz := wlb_time_told(to_timestamp((p_record->>'time')::float8));
begin
	case p_record->>'type'
	when 'attempt' then
		perform wlb_record_attempt(a, d, at);
	when 'plan' then
		perform wlb_record_plan(a, d, at);
	when 'gpus' then
		perform wlb_record_gpus(a, d);
	when 'step' then
		if (d->>'memory_bytes')::bigint > coalesce(a.memory_bytes, 0) then
			update attempts set memory_bytes = greatest(memory_bytes, (d->>'memory_bytes')::bigint) where id = a.id;
		end if;
		return wlb_record_step(a, d, at);
	when 'checkpoint' then
		insert into checkpoints (run_id, attempt_id, step, path, size_bytes, duration_s, recorded_at)
		values (a.run_id, a.id, (d->>'step')::bigint, d->>'path', (d->>'bytes')::bigint, (d->>'duration_s')::float8, at);
	when 'fault' then
		perform wlb_fault_insert(a.id, d->>'kind', (d->>'rank')::integer, d->>'node', (d->>'step')::bigint,
			coalesce(d->>'detail', ''), d->'evidence', null, at);
	when 'event' then
		if d->>'kind' = 'step_started' then
			perform wlb_attempt_begun(a, at);
		end if;
		perform wlb_event_add(a.run_id, a.id, d->>'kind', coalesce(d->>'detail', ''), at);
	when 'attempt_end' then
		perform wlb_record_attempt_end(a, p_source, d, at);
	end case;
	return (0, 0, 0, 0, true)::wlb_added;
end $$;

-- A loss that is reported again is stored once, with what wlbd knows of it added. When a node was lost that wlbd has asked
-- itself, wlbd says: it is evidence in the runs of all users. Call wlb_attempt_settle afterwards.
create or replace function wlb_fault_insert(p_attempt bigint, p_kind text, p_rank integer, p_node text, p_step bigint,
	p_detail text, p_evidence jsonb, p_proof jsonb, p_time timestamptz)
returns void language sql as $$
	insert into faults (run_id, attempt_id, kind, rank, node, step, detail, evidence, proof, detected_at)
	select run_id, id, p_kind, p_rank, p_node, p_step, p_detail, p_evidence, p_proof, p_time
	from attempts where id = p_attempt
	on conflict (attempt_id, kind, coalesce(node, ''), coalesce(rank, -1))
		where kind in ('rank_lost', 'node_lost', 'step_failed', 'launcher_lost', 'script_lost')
		do update set proof = coalesce(faults.proof, '{}') || excluded.proof, detail = excluded.detail,
			step = coalesce(faults.step, excluded.step),
			detected_at = case when excluded.proof ? 'seen' and not coalesce(faults.proof ? 'seen', false)
				then excluded.detected_at else faults.detected_at end
		where excluded.proof is not null and not coalesce(faults.proof, '{}') @> excluded.proof
$$;

-- ---- settings ------------------------------------------------------------------------------------------------------------

-- Changes what p_on_fault names. p_uid: the owner that the run must have, null for an administrator; p_by: the account
-- that asks. p_defaults: all items, as wlbd.conf has them. The lock is that of deliveries: rows that only refer to the run are
-- added meanwhile.
create or replace function wlb_run_set(p_name text, p_uid bigint, p_by bigint, p_on_fault text, p_defaults text)
returns json language plpgsql as $$
declare
	r runs := wlb_run_actable(p_name, p_uid);
	before text;
	after text;
begin
	select * into r from runs where id = r.id for no key update;
	if r.state in ('complete', 'failed', 'out_of_nodes', 'cancelled') then
		raise exception using errcode = 'WL409', message = format(
			'run %s has ended (%s): a setting can be changed only while it goes on', p_name, r.state);
	end if;
	before := wlb_items_merge(p_defaults, r.policy->>'on_fault');
	update runs set settings = settings || jsonb_build_object('on_fault',
		wlb_items_merge(settings->>'on_fault', p_on_fault)) where id = r.id returning * into r;
	after := wlb_items_merge(p_defaults, r.policy->>'on_fault');
	if after <> before then
		perform wlb_event_add(r.id, (select id from attempts where run_id = r.id order by number desc limit 1),
			'settings_changed', format('on-fault: %s -> %s by %s', wlb_items_without(before, after),
				wlb_items_without(after, before), wlb_changer(r, p_by)), now());
		perform wlb_run_trim(r.id);
	end if;
	return json_build_object('run_pk', r.id, 'run_id', r.name, 'before', before, 'on_fault', after);
end $$;
