-- A node that is lost after what ended its attempt is a fault of it, and never the cause: one that had ended its tasks (after_end), and
-- one that was alive when the attempt was ended on account of a verdict.
--
-- Replaces: function wlb_attempt_cause.

create or replace function wlb_attempt_cause(p_attempt bigint) returns bigint language sql stable as $$
	with f as (
		select id, kind, detected_at, coalesce(proof, '{}') as e from faults
		where attempt_id = p_attempt and not coalesce(proof ? 'after_end', false)
	), killed as (
		select min(case when kind = 'step_failed' then detected_at
			else coalesce(to_timestamp((e->>'during')::float8), '-infinity') end) as at
		from f where kind in ('launcher_lost', 'script_lost') or (kind = 'step_failed' and e ? 'step_broken')
	), nodes as (
		select min(coalesce(to_timestamp((e->>'alive_at')::float8), '-infinity')) as alive_at
		from f where kind = 'node_lost'
	), placed as (
		select f.*, kind = 'rank_lost' and e ? 'exit_code' and not (killed.at is not null
				and (detected_at >= killed.at or (e->>'exit_code')::integer in (137, 143)
					and detected_at > killed.at - interval '2 s'))
			as ended_by_itself, nodes.alive_at
		from f, killed, nodes
	)
	select id from placed order by case
			when (ended_by_itself or e ? 'evicted') and detected_at < alive_at - interval '0.5 s' then 0
			when kind = 'node_lost' then 1
			when e ? 'evicted' then 2
			when ended_by_itself then 3
			when kind in ('launcher_lost', 'script_lost') or (kind = 'step_failed' and e ? 'step_broken') then 4
			when kind <> 'step_failed' then 5
			else 6 end,
		coalesce((e->>'first')::boolean, false) desc,
		-- A launcher that Slurm killed with its script was closed shortly before the job's end is recorded.
		detected_at - case kind when 'script_lost' then interval '3 s' else '0' end, id
	limit 1
$$;
