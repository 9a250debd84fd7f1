-- A delivery may bring 1,000 faults: which is the cause is settled once, after the last, and not after each, which would
-- look at all of the attempt's faults as often.
--
-- Replaces: wlb_fault_put, wlb_record, wlb_deliver. Drops wlb_fault_add, which nothing calls any more.

drop function wlb_fault_add(bigint, text, integer, text, bigint, text, jsonb, timestamptz);

-- Told again, a loss is still one; what wlbd knows of it grows. wlb_attempt_settle follows.
create function wlb_fault_insert(p_attempt bigint, p_kind text, p_rank integer, p_node text, p_step bigint,
	p_detail text, p_evidence jsonb, p_proof jsonb, p_time timestamptz)
returns void language sql as $$
	insert into faults (run_id, attempt_id, kind, rank, node, step, detail, evidence, proof, detected_at)
	select run_id, id, p_kind, p_rank, p_node, p_step, p_detail, p_evidence, p_proof, p_time
	from attempts where id = p_attempt
	on conflict (attempt_id, kind, coalesce(node, ''), coalesce(rank, -1))
		where kind in ('rank_lost', 'node_lost', 'step_failed', 'launcher_lost', 'script_lost')
		do update set proof = coalesce(faults.proof, '{}') || excluded.proof, detail = excluded.detail,
			step = coalesce(faults.step, excluded.step)
		where excluded.proof is not null and not coalesce(faults.proof, '{}') @> excluded.proof
$$;

create or replace function wlb_fault_put(p_attempt bigint, p_kind text, p_rank integer, p_node text, p_step bigint,
	p_detail text, p_evidence jsonb, p_proof jsonb, p_time timestamptz)
returns void language plpgsql as $$
begin
	perform wlb_attempt_lock(p_attempt);
	perform wlb_fault_insert(p_attempt, p_kind, p_rank, p_node, p_step, p_detail, p_evidence, p_proof, p_time);
	perform wlb_attempt_settle(p_attempt);
end $$;

create or replace function wlb_record(a attempts, p_source text, p_record jsonb) returns wlb_added language plpgsql as $$
declare
	d jsonb := p_record->'data';
	at timestamptz := to_timestamp((p_record->>'time')::float8);
begin
	case p_record->>'type'
	when 'attempt' then
		perform wlb_record_attempt(a, d, at);
	when 'step' then
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

-- Stores the records of one request that are not stored yet, as before.
create or replace function wlb_deliver(p_attempt bigint, p_source text, p_body jsonb)
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
		one := wlb_record(a, p_source, record);
		added := (added.steps + one.steps, added.repeated + one.repeated, added.tokens + one.tokens,
			added.seconds + one.seconds, added.trimmed or one.trimmed)::wlb_added;
		stored := (record->>'seq')::bigint;
	end loop;
	if added.steps + added.repeated > 0 then
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
