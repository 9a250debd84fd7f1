-- Verdicts, which wlbd finds from the timings of ranks.

-- A verdict as it is now. One that was suspected and never confirmed is removed when it is over. Those that an earlier
-- start of wlbd found are over when the next one finds its first.
create function wlb_verdict_put(p_attempt bigint, p_watcher bigint, v jsonb) returns void language plpgsql as $$
declare
	r bigint := (select run_id from attempts where id = p_attempt);
	at timestamptz := to_timestamp((v->>'time')::float8);
begin
	perform wlb_attempt_lock(p_attempt);
	update verdicts set state = 'over', over_at = at
	where attempt_id = p_attempt and watcher <> p_watcher and state <> 'over';
	insert into verdicts (run_id, attempt_id, watcher, number, kind, state, ranks, rank_count, nodes, collective,
		sequence, step, cost_percent, certainty, evidence, action, began_at, found_at, confirmed_at, over_at)
	select r, p_attempt, p_watcher, (v->>'number')::bigint, v->>'kind', v->>'state',
		array(select x::integer from jsonb_array_elements_text(v->'ranks') x), (v->>'rank_count')::integer,
		array(select x from jsonb_array_elements_text(v->'nodes') x), v->>'collective', (v->>'sequence')::bigint,
		(v->>'step')::bigint, (v->>'cost_percent')::float8, (v->>'certainty')::float8, v->>'evidence', v->>'action',
		to_timestamp((v->>'began')::float8), at, case when v->>'state' = 'confirmed' then at end,
		case when v->>'state' = 'over' then at end
	on conflict (attempt_id, watcher, number) do update set state = excluded.state, ranks = excluded.ranks,
		rank_count = excluded.rank_count, nodes = excluded.nodes, collective = excluded.collective,
		sequence = excluded.sequence, step = excluded.step,
		cost_percent = coalesce(excluded.cost_percent, verdicts.cost_percent), certainty = excluded.certainty,
		evidence = excluded.evidence, action = excluded.action, began_at = least(verdicts.began_at, excluded.began_at),
		confirmed_at = coalesce(verdicts.confirmed_at, excluded.confirmed_at), over_at = excluded.over_at;
	delete from verdicts where attempt_id = p_attempt and watcher = p_watcher and number = (v->>'number')::bigint
		and state = 'over' and confirmed_at is null;
	perform wlb_verdicts_end(id, ended_at) from attempts where id = p_attempt and ended_at is not null;
	perform wlb_verdicts_trim(r);
end $$;

-- The calls of a verdict that wlb_verdict_put has stored; those of an earlier state stay where v has none.
create function wlb_verdict_calls_put(p_attempt bigint, p_watcher bigint, v jsonb) returns void language sql as $$
	update verdicts set calls = (v->'calls')::json
	where attempt_id = p_attempt and watcher = p_watcher and number = (v->>'number')::bigint
		and jsonb_array_length(coalesce(v->'calls', '[]')) > 0
$$;

-- The verdicts of an attempt end with it, whichever way that becomes known.
create function wlb_verdicts_end(p_attempt bigint, p_time timestamptz) returns void language sql as $$
	delete from verdicts where attempt_id = p_attempt and state = 'suspected';
	update verdicts set state = 'over', over_at = p_time where attempt_id = p_attempt and state = 'confirmed'
$$;

-- A run keeps its newest 1,000.
create function wlb_verdicts_trim(p_run bigint) returns void language sql as $$
	with old as (
		delete from verdicts where run_id = p_run and id <= (
			select id from verdicts where run_id = p_run order by id desc offset 1000 limit 1)
		returning 1
	)
	update runs set dropped_verdicts = dropped_verdicts + (select count(*) from old)
	where id = p_run and exists (select from old)
$$;

create function wlb_verdict_json(v verdicts, p_attempt integer) returns json language sql stable as $$
	select json_build_object('attempt', p_attempt, 'kind', v.kind, 'state', v.state, 'ranks', v.ranks,
		'rank_count', v.rank_count, 'nodes', v.nodes, 'collective', v.collective, 'sequence', v.sequence,
		'step', v.step, 'cost_percent', wlb_real(v.cost_percent), 'certainty', wlb_real(v.certainty),
		'evidence', v.evidence, 'action', v.action, 'began_at', wlb_time(v.began_at), 'found_at', wlb_time(v.found_at),
		'confirmed_at', wlb_time(v.confirmed_at), 'over_at', wlb_time(v.over_at), 'calls', v.calls)
$$;

create function wlb_verdicts_json(p_run bigint) returns json language plpgsql stable as $$
begin
	return (select coalesce(json_agg(wlb_verdict_json(v, (select number from attempts where id = v.attempt_id))
		order by v.id), '[]')
	from (select * from verdicts where run_id = p_run order by id desc limit 200) as v);
end $$;
