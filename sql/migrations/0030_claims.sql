-- What a client claims moves neither wlbd's orders to Slurm nor what other users read.
--
-- Replaces: views run_attempts, run_summary; functions wlb_attempt_settle, wlb_attempts_json, wlb_fault_insert, wlb_record,
-- wlb_record_attempt, wlb_run_end, wlb_run_set, wlb_run_trim, wlb_runs_json, wlb_runs_open, wlb_steps_newest, wlb_steps_page.

-- ---- the nodes of an attempt ---------------------------------------------------------------------------------------

-- Of an attempt that wlbd itself started, rank 0 tells which of its nodes have ranks; it adds none.
create or replace function wlb_record_attempt(a attempts, d jsonb, p_time timestamptz) returns void language plpgsql as $$
declare
	used text[] := (select array_agg(node order by first) from (
		select m->>'node' as node, min((m->>'rank')::integer) as first
		from jsonb_array_elements(d->'rank_map') m
		where a.decision is null or m->>'node' in (select jsonb_array_elements_text(a.decision->'nodes'))
		group by m->>'node') as named);
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

-- ---- replies that are bounded in bytes -----------------------------------------------------------------------------------

-- A list of runs reads the names of every run's nodes, whoever named them: their number and size are kept beside them.
create function wlb_names_bytes(p_names text[]) returns integer language sql immutable as $$
	select octet_length(to_json(p_names)::text)
$$;

alter table attempts
	add column node_count integer generated always as (cardinality(nodes)) stored,
	add column nodes_bytes integer generated always as (wlb_names_bytes(nodes)) stored; -- as JSON

create or replace view run_attempts as
select r.name as run, r.id as run_id, a.id as attempt_id, a.number as attempt, a.uuid, a.state, a.reason, a.nodes,
	a.node_count, a.spares, a.world_size, a.tp, a.cp, a.pp, a.dp, a.device, a.dtype,
	a.resumed_step, a.checkpoint_path, a.exit_code, a.new_steps,
	least((select min(step) from steps s where s.attempt_id = a.id),
		(select min(step) from steps_superseded s where s.attempt_id = a.id)) as first_step,
	greatest((select max(step) from steps s where s.attempt_id = a.id),
		(select max(step) from steps_superseded s where s.attempt_id = a.id)) as last_step,
	a.created_at, a.started_at, a.ended_at, a.plan, a.memory_bytes, a.gpus, a.nodes_bytes
from attempts a join runs r on r.id = a.run_id;

create or replace view run_summary as
select r.name as run, r.id as run_id, r.job_id, r.job_name, r.user_name, r.cluster, r.state, r.reason,
	r.submitted_at, r.started_at, r.ended_at,
	wlb_span(r.started_at, coalesce(r.ended_at, now())) as elapsed,
	last.number as attempts, last.nodes, last.node_count, last.world_size,
	last.tp, last.cp, last.pp, last.dp,
	r.steps, r.train_iters, r.last_step, r.tokens, wlb_rate(r.tokens, r.step_seconds) as tokens_per_s,
	r.first_loss, r.last_loss, r.steps_repeated, r.faults, last.nodes_bytes
from runs r
left join lateral (select * from attempts a where a.run_id = r.id order by number desc limit 1) last on true;

-- Names of nodes take 16 MiB of a reply at most, and so do rank maps; a page of steps, and the newest steps of a run, have
-- 8 MiB, a list of runs 24 MiB.

create function wlb_rank_map_bytes(p_attempt bigint) returns bigint language sql stable as $$
	select coalesce(sum(octet_length(to_json(node)::text) + 64), 0) from rank_map where attempt_id = p_attempt
$$;

-- Only the newest 16 attempts are returned with their plans and GPUs.
create or replace function wlb_attempts_json(p_run bigint) returns json language sql stable as $$
	with newest as (
		select *, sum(node_count) over later as names, sum(nodes_bytes) over later as names_bytes,
			sum(greatest(world_size::numeric, 1)) over later as ranks, row_number() over later as place
		from (select * from run_attempts where run_id = p_run order by attempt desc limit 1000) as kept
		window later as (order by attempt desc)
	), sized as (
		select *, sum(case when ranks <= 65536 then wlb_rank_map_bytes(attempt_id) end)
			over (order by attempt desc) as map_bytes
		from newest
	)
	select coalesce(json_agg(json_build_object('attempt', attempt, 'attempt_id', uuid, 'state', state, 'reason', reason,
		'nodes', case when names <= 1000000 and names_bytes <= 16 << 20 then nodes else '{}' end,
		'node_count', node_count, 'spares', spares, 'layout', wlb_layout_json(tp, cp, pp, dp),
		'rank_map', case when ranks <= 65536 and map_bytes <= 16 << 20 then wlb_rank_map_json(attempt_id) end,
		'world_size', world_size, 'device', device, 'dtype', dtype,
		'created_at', wlb_time(created_at), 'started_at', wlb_time(started_at), 'ended_at', wlb_time(ended_at),
		'first_step', first_step, 'last_step', last_step, 'resumed_step', resumed_step,
		'checkpoint', checkpoint_path, 'exit_code', exit_code,
		'plan', case when place <= 16 then wlb_plain_within(plan, 32768) end, 'memory_bytes', memory_bytes,
		'gpus', case when place <= 16 then wlb_plain_within(gpus, 16384) end,
		'step_s', case when place <= 16 then wlb_attempt_step_s(attempt_id) end) order by attempt), '[]')
	from sized
$$;

-- A page: the steps from p_from on; `next` is the first step of the next page, null after the last page. A page has a step
-- at least.
create or replace function wlb_steps_page(p_run bigint, p_from bigint, p_limit bigint) returns json language sql stable as $$
	with page as (
		select s.step, wlb_step_json(s::run_steps) as entry from (select * from run_steps
			where run_id = p_run and step >= p_from order by step limit least(p_limit, 10000)) as s
	), sized as (
		select step, entry, sum(octet_length(entry::text)) over (order by step) - octet_length(entry::text) as before from page
	), kept as (
		select step, entry from sized where before < 8 << 20
	)
	select json_build_object(
		'steps', coalesce((select json_agg(entry order by step) from kept), '[]'),
		'next', (select min(s.step) from steps s where s.run_id = p_run and s.step > (select max(step) from kept)))
$$;

-- The newest 10,000 steps.
create or replace function wlb_steps_newest(p_run bigint) returns json language sql stable as $$
	with page as (
		select s.step, wlb_step_json(s::run_steps) as entry from (select * from run_steps
			where run_id = p_run order by step desc limit 10000) as s
	), sized as (
		select step, entry, sum(octet_length(entry::text)) over (order by step desc) as bytes from page
	)
	select coalesce(json_agg(entry order by step), '[]') from sized where bytes <= 8 << 20
$$;

-- Planned for the values given: a generic plan would read every run when only the user's are requested.
create or replace function wlb_runs_json(p_uid bigint, p_user text, p_state text, p_limit bigint)
returns json language plpgsql stable set plan_cache_mode = force_custom_plan as $$
begin
	return (with page as (
		select id from runs where (p_uid is null or uid = p_uid) and (p_user is null or user_name = p_user)
			and (p_state is null or state = p_state) order by id desc limit least(p_limit, 10000)
	), listed as (
		select s.*, sum(node_count) over newer as names, sum(s.nodes_bytes) over newer as names_bytes
		from page join run_summary s on s.run_id = page.id window newer as (order by s.run_id desc)
	), told as (
		select s.run_id, json_build_object('run_id', s.run, 'id', s.run_id,
			'job_id', s.job_id, 'job_name', s.job_name, 'user', s.user_name, 'state', s.state, 'reason', s.reason,
			'submitted_at', wlb_time(s.submitted_at), 'started_at', wlb_time(s.started_at), 'ended_at', wlb_time(s.ended_at),
			'attempts', coalesce(s.attempts, 0),
			'nodes', case when s.names <= 1000000 and s.names_bytes <= 16 << 20 then coalesce(s.nodes, '{}') else '{}' end,
			'node_count', coalesce(s.node_count, 0), 'world_size', s.world_size,
			'layout', wlb_layout_json(s.tp, s.cp, s.pp, s.dp), 'steps_done', s.steps, 'last_step', s.last_step,
			'train_iters', s.train_iters, 'last_loss', wlb_real(s.last_loss), 'tokens_per_s', s.tokens_per_s,
			'faults', s.faults) as entry
		from listed s
	), sized as (
		select run_id, entry, sum(octet_length(entry::text)) over (order by run_id desc) as bytes from told
	)
	select json_build_object('runs', coalesce(json_agg(entry order by run_id desc) filter (where bytes <= 24 << 20), '[]'),
		'left_out', count(*) filter (where bytes > 24 << 20)) from sized);
end $$;
