-- Records that clients deliver. A function is one statement and so one transaction.

-- The changes that a record, or a whole delivery, makes to its run.
create type wlb_added as (
	steps bigint,
	repeated bigint,
	tokens numeric,
	seconds numeric,
	trimmed boolean -- something else that has a bound was added
);

-- Stores the records of one request that are not stored yet. The sequence number moves in the same transaction. Several
-- connections deliver: the run's row is locked first, so that deliveries of a run are stored one after the other. Which
-- fault is the cause is settled once, after the last: a delivery may bring 1,000. p_judged: what wlbd has judged of each fault, by
-- the number of its record.
create function wlb_deliver(p_attempt bigint, p_source text, p_body jsonb, p_judged jsonb)
returns json language plpgsql as $$
declare
	a attempts;
	stored bigint;
	record jsonb;
	one wlb_added;
	added wlb_added := (0, 0, 0, 0, false);
begin
	select * into strict a from attempts where id = p_attempt;
	perform from runs where id = a.run_id for no key update;
	insert into sources (attempt_id, source) values (p_attempt, p_source) on conflict do nothing;
	select last_seq into stored from sources where attempt_id = p_attempt and source = p_source for update;
	if (p_body->>'first_seq')::bigint > stored + 1 then
		return json_build_object('acked_seq', stored, 'gap', true);
	end if;
	for record in select value from jsonb_array_elements(p_body->'records') where (value->>'seq')::bigint > stored loop
		one := wlb_record(a, p_source, record, p_judged->(record->>'seq'));
		added := (added.steps + one.steps, added.repeated + one.repeated, added.tokens + one.tokens,
			added.seconds + one.seconds, added.trimmed or one.trimmed)::wlb_added;
		stored := (record->>'seq')::bigint;
	end loop;
	if added.steps + added.repeated > 0 or p_body->'records' @> '[{"type": "followed"}]' then
		perform wlb_run_total(a, added);
	end if;
	if p_body->'records' @> '[{"type": "fault"}]' then
		perform wlb_attempt_settle(a.id);
	end if;
	if added.trimmed then
		perform wlb_run_trim(a.run_id);
	end if;
	update sources set last_seq = stored, updated_at = now() where attempt_id = p_attempt and source = p_source;
	return json_build_object('acked_seq', stored, 'gap', false);
end $$;

create function wlb_record(a attempts, p_source text, p_record jsonb, p_judged jsonb) returns wlb_added language plpgsql as $$
declare
	d jsonb := p_record->'data';
	at timestamptz := wlb_time_told(to_timestamp((p_record->>'time')::float8));
begin
	case p_record->>'type'
	when 'attempt' then
		perform wlb_record_attempt(a, p_source, d, at);
	when 'plan' then
		perform wlb_record_plan(a, d, at);
	when 'gpus' then
		perform wlb_record_gpus(a, d);
	when 'step' then
		if (d->>'memory_bytes')::bigint > coalesce(a.memory_bytes, 0) then
			update attempts set memory_bytes = greatest(memory_bytes, (d->>'memory_bytes')::bigint) where id = a.id;
		end if;
		return wlb_record_step(a, d, at);
	when 'followed' then
		return wlb_record_followed(a, d, at);
	when 'checkpoint' then
		insert into checkpoints (run_id, attempt_id, step, path, size_bytes, duration_s, stall_s, recorded_at)
		select a.run_id, a.id, (d->>'step')::bigint, d->>'path', (d->>'bytes')::bigint, (d->>'duration_s')::float8,
			(d->>'stall_s')::float8, at
		where not wlb_run_is_followed(a.run_id) or not exists ( -- a trainer's files may be read twice
			select from checkpoints where attempt_id = a.id and step = (d->>'step')::bigint and path = d->>'path');
	when 'evaluation' then
		insert into evaluations (run_id, step, attempt_id, loss, tokens, duration_s, recorded_at)
		values (a.run_id, (d->>'step')::bigint, a.id, (d->>'loss')::float8, (d->>'tokens')::bigint, (d->>'duration_s')::float8, at)
		on conflict (run_id, step) do update set attempt_id = excluded.attempt_id, loss = excluded.loss, tokens = excluded.tokens,
			duration_s = excluded.duration_s, recorded_at = excluded.recorded_at;
		return (0, 0, 0, 0, false)::wlb_added;
	when 'fault' then
		perform wlb_fault_insert(a.id, d->>'kind', (d->>'rank')::integer, d->>'node', (d->>'step')::bigint,
			coalesce(d->>'detail', ''), d->'evidence', null, at, p_judged);
	when 'event' then
		if d->>'kind' = 'step_started' then
			perform wlb_attempt_begun(a, at);
		end if;
		perform wlb_event_add(a.run_id, a.id, d->>'kind', coalesce(d->>'detail', ''), at, wlb_save_seen(d->'save'));
	when 'command' then
		perform wlb_record_command(a, d);
	when 'attempt_end' then
		perform wlb_record_attempt_end(a, p_source, d, at);
		perform wlb_record_error(a, d->'error');
	end case;
	return (0, 0, 0, 0, true)::wlb_added;
end $$;

-- The launcher's record, of source 'run', says whose the run is where no launcher of that start of the job has announced it; where the
-- run was over before that start, it goes on. It says nothing else that is new where wlbd decided, or where rank 0 has recorded more
-- (world_size is set then), which may have happened since `a` was read.
create function wlb_record_attempt(a attempts, p_source text, d jsonb, p_time timestamptz)
returns void language plpgsql as $$
begin
	if p_source = 'run' then
		perform wlb_attempt_place(b, d) from attempts b where b.id = a.id and b.decision is null and b.world_size is null;
		update attempts set goes_on = d->>'on_rank_exit' = 'continue' where id = a.id and decision is null and d ? 'on_rank_exit';
		update runs set state = 'restarting', reason = '', ended_by = null, ended_at = null
		where id = a.run_id and wlb_run_is_over(state) and (d->>'restart_count')::integer > coalesce(launcher_start, restart_count);
		if found then
			perform wlb_attempt_begun_again(a);
		end if;
		update runs set launcher = a.uuid, launcher_start = (d->>'restart_count')::integer
		where id = a.run_id and d ? 'restart_count' and coalesce(launcher_start < (d->>'restart_count')::integer, true);
		return;
	end if;
	perform wlb_attempt_begun(a, p_time);
	perform wlb_attempt_place(a, d);
	update attempts set
		world_size = (d->>'world_size')::integer, dtype = d->>'dtype', device = d->>'device',
		resumed_step = (d->>'resumed_step')::bigint, checkpoint_path = d->>'checkpoint',
		saves_on_request = coalesce((d->>'saves_on_request')::boolean, false),
		reported_at = coalesce(reported_at, p_time)
	where id = a.id;
	update runs set model = d->'model', seq_length_tokens = (d->>'seq_length')::bigint,
		global_batch_size = (d->>'global_batch_size')::bigint, train_iters = (d->>'train_iters')::bigint
	where id = a.run_id;
end $$;

-- Stores the layout of an attempt and the nodes of its ranks. Of an attempt that wlbd itself started, rank 0 tells which of
-- its nodes have ranks; it adds none.
create function wlb_attempt_place(a attempts, d jsonb) returns void language plpgsql as $$
declare
	used text[] := (select array_agg(node order by first) from (
		select m->>'node' as node, min((m->>'rank')::integer) as first
		from jsonb_array_elements(d->'rank_map') m
		where a.decision is null or m->>'node' in (select jsonb_array_elements_text(a.decision->'nodes'))
		group by m->>'node') as named);
begin
	update attempts set
		tp = (d->'layout'->>'tp')::integer, cp = (d->'layout'->>'cp')::integer,
		pp = (d->'layout'->>'pp')::integer, dp = (d->'layout'->>'dp')::integer,
		nodes = coalesce(used, nodes)
	where id = a.id;
	delete from rank_map where attempt_id = a.id and rank >= (d->>'world_size')::integer;
	insert into rank_map (attempt_id, rank, node, local_rank)
	select a.id, (m->>'rank')::integer, m->>'node', (m->>'local_rank')::integer
	from jsonb_array_elements(d->'rank_map') m
	on conflict (attempt_id, rank) do update set node = excluded.node, local_rank = excluded.local_rank;
end $$;

-- Stores a plan. The attempt has the plan's layout until rank 0 reports its own.
create function wlb_record_plan(a attempts, d jsonb, p_time timestamptz) returns void language plpgsql as $$
begin
	update attempts set plan = wlb_plain(d) where id = a.id;
	update attempts set tp = (d->'layout'->>'tp')::integer, cp = (d->'layout'->>'cp')::integer,
		pp = (d->'layout'->>'pp')::integer, dp = (d->'layout'->>'dp')::integer
	where id = a.id and world_size is null;
end $$;

create function wlb_record_gpus(a attempts, d jsonb) returns void language plpgsql as $$
begin
	update attempts set gpus = jsonb_build_object('kinds', wlb_plain(d->'kinds'), 'ranks_per_gpu', d->'ranks_per_gpu')
	where id = a.id;
	update rank_map set device = n.device
	from (select place - 1 as rank, number::integer as device
		from jsonb_array_elements_text(d->'devices') with ordinality as each (number, place)) n
	where rank_map.attempt_id = a.id and rank_map.rank = n.rank;
end $$;

-- Tokens and seconds of a row, for sums.
create function wlb_step_tokens(s steps) returns numeric language sql immutable as $$
	select coalesce(s.tokens, 0)::numeric * s.span_steps
$$;

create function wlb_step_seconds(s steps) returns numeric language sql immutable as $$
	select wlb_span_seconds(s.step_time_s, s.span_steps)
$$;

create function wlb_step_supersede(s steps) returns void language sql as $$
	insert into steps_superseded (run_id, step, attempt_id, loss, grad_norm, learning_rate, tokens, documents, step_time_s,
		tokens_per_s, held_tokens, predicted_imbalance, imbalance, parts, recorded_at, span_steps, loss_tokens, global_batch_size)
	select s.*
$$;

-- Writes the row that a step has.
create function wlb_step_write(s steps) returns void language sql as $$
	update steps set attempt_id = s.attempt_id, loss = s.loss, grad_norm = s.grad_norm,
		learning_rate = s.learning_rate, tokens = s.tokens, documents = s.documents,
		step_time_s = s.step_time_s, tokens_per_s = s.tokens_per_s, held_tokens = s.held_tokens,
		predicted_imbalance = s.predicted_imbalance, imbalance = s.imbalance, parts = s.parts,
		recorded_at = s.recorded_at, span_steps = s.span_steps, loss_tokens = s.loss_tokens,
		global_batch_size = s.global_batch_size
	where run_id = s.run_id and step = s.step
$$;

-- A row with what is said of its step later.
create function wlb_step_added(old steps, new steps) returns steps language sql immutable as $$
	select row(old.run_id, old.step, old.attempt_id, coalesce(new.loss, old.loss), coalesce(new.grad_norm, old.grad_norm),
		coalesce(new.learning_rate, old.learning_rate), coalesce(new.tokens, old.tokens), coalesce(new.documents, old.documents),
		coalesce(new.step_time_s, old.step_time_s), coalesce(new.tokens_per_s, old.tokens_per_s),
		coalesce(new.held_tokens, old.held_tokens), coalesce(new.predicted_imbalance, old.predicted_imbalance),
		coalesce(new.imbalance, old.imbalance), coalesce(new.parts, old.parts), old.recorded_at, old.span_steps,
		coalesce(new.loss_tokens, old.loss_tokens), coalesce(new.global_batch_size, old.global_batch_size))::steps
$$;

-- The newest attempt's row of a step is the one in `steps`; every other is kept in steps_superseded. p_adds: a row of the same attempt
-- was said in parts, by one record after the other, and was not done again.
create function wlb_step_store(a attempts, new steps, p_adds boolean) returns wlb_added language plpgsql as $$
declare
	holder integer;
	old steps;
begin
	select * into old from steps where run_id = a.run_id and step = new.step;
	if old.run_id is null then
		insert into steps select new.*;
		return (1, 0, wlb_step_tokens(new), wlb_step_seconds(new), false)::wlb_added;
	end if;
	if p_adds and old.attempt_id = a.id then
		new := wlb_step_added(old, new);
		perform wlb_step_write(new);
		return (0, 0, wlb_step_tokens(new) - wlb_step_tokens(old), wlb_step_seconds(new) - wlb_step_seconds(old), false)::wlb_added;
	end if;
	select number into holder from attempts where id = old.attempt_id;
	if holder > a.number then
		if p_adds and exists (select from steps_superseded where attempt_id = a.id and step = new.step) then
			return (0, 0, 0, 0, false)::wlb_added;
		end if;
		perform wlb_step_supersede(new);
		update attempts set repeated_seconds = repeated_seconds + wlb_step_seconds(new) where id = a.id;
		return (0, 1, 0, 0, false)::wlb_added;
	end if;
	perform wlb_step_supersede(old);
	perform wlb_step_replaced(old.attempt_id, a.id, wlb_step_seconds(old));
	perform wlb_step_write(new);
	return (0, 1, wlb_step_tokens(new) - wlb_step_tokens(old), wlb_step_seconds(new) - wlb_step_seconds(old), false)::wlb_added;
end $$;

create function wlb_record_step(a attempts, d jsonb, p_time timestamptz) returns wlb_added language sql as $$
	select wlb_step_store(a, row(a.run_id, (d->>'step')::bigint, a.id, (d->>'loss')::float8, (d->>'grad_norm')::float8, (d->>'lr')::float8,
		(d->>'tokens')::bigint, (d->>'documents')::bigint, (d->>'step_time_s')::float8, (d->>'tokens_per_s')::float8,
		(d->>'held_tokens')::bigint, (d->>'predicted_imbalance')::float8, (d->>'imbalance')::float8, d->'parts',
		p_time, 1, (d->>'loss_tokens')::bigint, (d->>'global_batch_size')::bigint)::steps,
		exists (select from followed_values where attempt_id = a.id))
$$;

-- A step of p_old was done again by p_new, whose row is now the one in `steps`. wlb_run_total adds to p_new what the run
-- gains by that, which is the new row's seconds without the old one's: so p_new gets the old one's here.
create function wlb_step_replaced(p_old bigint, p_new bigint, p_old_s numeric) returns void language sql as $$
	update attempts set
		step_seconds = step_seconds + case when id = p_new then p_old_s else 0 end
			- case when id = p_old then p_old_s else 0 end,
		repeated_seconds = repeated_seconds + case when id = p_old then p_old_s else 0 end
	where id in (p_old, p_new)
$$;

create function wlb_record_attempt_end(a attempts, p_source text, d jsonb, p_time timestamptz)
returns void language plpgsql as $$
declare
	newest boolean := not exists (select from attempts where run_id = a.run_id and number > a.number);
begin
	-- The launcher knows why it has stopped the ranks, whose own record may arrive after its.
	perform wlb_attempt_end(a.id, d->>'state', (d->>'exit_code')::integer,
		case when a.launcher_told and a.told <> '' and p_source <> 'run' then '' else coalesce(d->>'reason', '') end, p_time);
	update attempts set launcher_told = true where id = a.id and p_source = 'run';
	if newest and wlb_has_saved_and_stopped(d->>'state', (d->>'exit_code')::integer) then
		-- The run waits for its job to start again, unless its launcher says otherwise.
		update runs set state = 'restarting' where id = a.run_id and state = 'running' and p_source = 'run';
	elsif newest and (d->>'state') in ('complete', 'failed') then
		-- Without `wlb run` nothing else reports how the run ended. With it, this corrects an inference: a job that
		-- Slurm calls COMPLETED may be a script that ignores what its launcher returned.
		update runs set state = d->>'state', ended_by = 'attempt', ended_at = coalesce(ended_at, p_time),
			reason = case when (d->>'state') = 'complete' then '' else (select reason from attempts where id = a.id) end
		where id = a.run_id and ended_by is distinct from 'launcher' and (not a.launched
			or (ended_by in ('coordinator', 'slurm') and state = 'failed' and (d->>'state') = 'complete')
			or (ended_by = 'slurm' and state = 'complete' and (d->>'state') = 'failed'));
	end if;
end $$;

-- What is kept of a save that the hook has seen; null where the event has none.
create function wlb_save_seen(p_save jsonb) returns jsonb language sql immutable as $$
	select jsonb_strip_nulls(jsonb_build_object('path', p_save->'path', 'step', p_save->'step', 'bytes', p_save->'bytes',
		'duration_s', p_save->'duration_s', 'stall_s', p_save->'stall_s')) where jsonb_typeof(p_save) = 'object'
$$;

create function wlb_event_add(p_run bigint, p_attempt bigint, p_kind text, p_detail text, p_time timestamptz,
	p_save jsonb default null)
returns void language sql as $$
	insert into events (run_id, attempt_id, kind, detail, recorded_at, save)
	values (p_run, p_attempt, p_kind, p_detail, p_time, p_save)
	on conflict (run_id, kind, recorded_at, md5(detail)) do nothing
$$;

-- The first and the last step are looked up and not compared: the primary key gives them at once.
create function wlb_run_total(a attempts, added wlb_added) returns void language plpgsql as $$
declare
	first steps;
	last steps;
begin
	select * into first from steps where run_id = a.run_id order by step limit 1;
	select * into last from steps where run_id = a.run_id order by step desc limit 1;
	update runs set steps = steps + added.steps, steps_repeated = steps_repeated + added.repeated,
		tokens = tokens + added.tokens, step_seconds = step_seconds + added.seconds,
		first_step = first.step, first_loss = first.loss, last_step = last.step, last_loss = last.loss
	where id = a.run_id;
	update attempts set new_steps = new_steps + added.steps, step_seconds = step_seconds + added.seconds
	where id = a.id;
end $$;

-- Removes the oldest records of each kind over its bound, and counts them.
create function wlb_run_trim(p_run bigint) returns void language plpgsql as $$
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
