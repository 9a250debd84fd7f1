-- A launcher that starts an attempt while wlbd is away records on which nodes and with which layout: a trainer that is not
-- wlb-worker records neither, so that such an attempt had no nodes.
--
-- Replaces: functions wlb_record, wlb_record_attempt (which takes the source of the record).

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

-- The launcher's, of source 'run', says nothing new where wlbd decided, or where rank 0 has recorded more (world_size is set
-- then), which may have happened since `a` was read.
drop function wlb_record_attempt(attempts, jsonb, timestamptz);
create function wlb_record_attempt(a attempts, p_source text, d jsonb, p_time timestamptz)
returns void language plpgsql as $$
begin
	if p_source = 'run' then
		perform wlb_attempt_place(b, d) from attempts b where b.id = a.id and b.decision is null and b.world_size is null;
		return;
	end if;
	perform wlb_attempt_begun(a, p_time);
	perform wlb_attempt_place(a, d);
	update attempts set
		world_size = (d->>'world_size')::integer, dtype = d->>'dtype', device = d->>'device',
		resumed_step = (d->>'resumed_step')::bigint, checkpoint_path = d->>'checkpoint',
		reported_at = coalesce(reported_at, p_time)
	where id = a.id;
	update runs set model = d->'model', seq_length_tokens = (d->>'seq_length')::bigint,
		global_batch_size = (d->>'global_batch_size')::bigint, train_iters = (d->>'train_iters')::bigint
	where id = a.run_id;
end $$;

create or replace function wlb_record(a attempts, p_source text, p_record jsonb) returns wlb_added language plpgsql as $$
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
