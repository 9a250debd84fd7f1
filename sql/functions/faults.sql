-- Faults: stored once, and the one that broke an attempt, from those recorded, whatever their source and order.

-- A loss that is reported again is stored once, with what wlbd knows of it added. What wlbd ended the attempt for is stored once, too: the
-- statement is sent again where its reply was lost. Call wlb_attempt_settle afterwards.
create function wlb_fault_insert(p_attempt bigint, p_kind text, p_rank integer, p_node text, p_step bigint,
	p_detail text, p_evidence jsonb, p_proof jsonb, p_time timestamptz)
returns void language sql as $$
	insert into faults (run_id, attempt_id, kind, is_loss, rank, node, step, detail, evidence, proof, detected_at)
	select run_id, id, p_kind, (select is_loss from fault_kinds where name = p_kind), p_rank, p_node, p_step, p_detail, p_evidence,
		p_proof, p_time
	from attempts where id = p_attempt
		and not (coalesce(p_proof ? 'evicted', false) and exists (select from faults f where f.attempt_id = p_attempt
			and f.kind = p_kind and f.rank is not distinct from p_rank and f.detected_at = p_time and f.proof ? 'evicted'))
	on conflict (attempt_id, kind, coalesce(node, ''), coalesce(rank, -1)) where is_loss
		do update set proof = coalesce(faults.proof, '{}') || excluded.proof, detail = excluded.detail,
			step = coalesce(faults.step, excluded.step),
			detected_at = case when excluded.proof ? 'seen' and not coalesce(faults.proof ? 'seen', false)
				then excluded.detected_at else faults.detected_at end
		where excluded.proof is not null and not coalesce(faults.proof, '{}') @> excluded.proof
$$;

-- A fault that wlbd has found. A lost node that wlbd has asked itself is `seen`: that is evidence in the runs of all users, unless the job
-- was over (job_over), or Slurm has not said since wlbd's start that the node is the job's (job_unknown) and wlbd did not start the
-- attempt on it. p_time is by wlbd's clock; one ahead of the database's would make a fault newer than the check that follows it.
create function wlb_fault_found(p_attempt bigint, p_kind text, p_rank integer, p_node text, p_step bigint,
	p_detail text, p_proof jsonb, p_time timestamptz)
returns void language sql as $$
	select wlb_attempt_lock(p_attempt);
	select wlb_fault_insert(p_attempt, p_kind, p_rank, p_node, p_step, p_detail, null,
		case when p_kind = 'node_lost' and not coalesce(p_proof ? 'job_over', false)
				and (not coalesce(p_proof ? 'job_unknown', false) or wlb_attempt_has_node(p_attempt, p_node))
			then coalesce(p_proof, '{}') || '{"seen":true}' else p_proof end, least(p_time, now()));
	select wlb_attempt_settle(p_attempt)
$$;

create function wlb_fault_text(f faults) returns text language sql immutable as $$
	select case
		when f.kind = 'node_lost' then format('node %s is lost', f.node)
		when f.kind = 'rank_lost' then format('rank %s on %s ', f.rank, f.node) || case
			when (f.proof->>'exit_code')::integer > 128
				then format('was killed by signal %s', (f.proof->>'exit_code')::integer - 128)
			when f.proof ? 'exit_code' then format('ended with exit code %s', f.proof->>'exit_code')
			else 'is lost' end
		when f.kind = 'launcher_lost' then 'wlb run' || coalesce(' on ' || f.node, '') || ' was killed'
		when f.kind in ('script_lost', 'step_failed') then f.detail
		when f.proof ? 'evicted' then f.proof->>'evicted'
		else f.kind || coalesce(': ' || nullif(f.detail, ''), '') end
$$;

-- The strongest fault is the cause: a rank that had ended, or a verdict, while every lost node was still alive; a lost node; a verdict; a
-- rank that ended by itself; a killed launcher, script, srun or slurmstepd; a rank that is not there; a step that failed. A rank that ended
-- after one of the killed did not end by itself, nor one that Slurm's signals ended (SIGTERM, SIGKILL) in the two seconds before, since a
-- closed connection or a rank's end may be noticed first. A node that is lost after what ended the attempt is never the cause: one that had
-- ended its tasks (after_end), and one that was alive when the attempt was ended on account of a verdict.
create function wlb_attempt_cause(p_attempt bigint) returns bigint language sql stable as $$
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

-- Marks the cause of an attempt, and sets the reasons of attempt and run to it.
create function wlb_attempt_settle(p_attempt bigint) returns void language plpgsql as $$
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

-- The verdict of a fault for which wlbd ended its attempt; null: it is not stored.
create function wlb_fault_verdict(f faults) returns bigint language sql stable as $$
	select max(v.id) from verdicts v
	where v.attempt_id = f.attempt_id and v.confirmed_at is not null
		and (f.rank is null or f.rank = any (v.ranks)) and (f.node is null or f.node = any (v.nodes))
$$;

create type wlb_listed_fault as (
	told_at timestamptz,
	id bigint,
	entry json
);

-- A verdict that was to be reported when it was found may end its attempt later, after `wlb set`.
create function wlb_listed_fault_of(f faults, p_run text) returns wlb_listed_fault language sql stable as $$
	select row(f.detected_at, f.id, json_build_object('run_id', p_run, 'source', 'fault',
		'attempt', (select number from attempts where id = f.attempt_id), 'time', wlb_time(f.detected_at), 'kind', f.kind,
		'state', 'confirmed', 'ranks', array_remove(array[f.rank, f.peer_rank], null),
		'rank_count', num_nonnulls(f.rank, f.peer_rank), 'nodes', array_remove(array[f.node], null),
		'collective', f.collective, 'step', f.step, 'evidence', coalesce(nullif(f.detail, ''), wlb_fault_text(f)),
		'cause', f.cause))::wlb_listed_fault
$$;

-- A verdict that was to be reported when it was found may end its attempt later, after `wlb set`.
create function wlb_listed_fault_of(v verdicts, p_run text) returns wlb_listed_fault language sql stable as $$
	select row(v.found_at, v.id, json_build_object('run_id', p_run, 'source', 'verdict',
		'attempt', (select number from attempts where id = v.attempt_id), 'time', wlb_time(v.found_at), 'kind', v.kind,
		'state', v.state, 'ranks', v.ranks, 'rank_count', v.rank_count, 'nodes', v.nodes, 'collective', v.collective,
		'sequence', v.sequence, 'step', v.step, 'cost_percent', wlb_real(v.cost_percent),
		'certainty', wlb_real(v.certainty), 'evidence', v.evidence,
		'action', case when exists (select from faults f where f.attempt_id = v.attempt_id
			and f.proof ? 'evicted' and wlb_fault_verdict(f) = v.id) then 'evict' else v.action end,
		'began_at', wlb_time(v.began_at), 'confirmed_at', wlb_time(v.confirmed_at),
		'over_at', wlb_time(v.over_at)))::wlb_listed_fault
$$;

-- The newest p_limit: of the run p_run in the order of time, or, where that is null, of all runs whose owner is p_uid
-- (null: of all), the newest first. p_node and p_since may be null. A fault for which wlbd ended its attempt is told as the verdict that it was.
create function wlb_faults_list(p_run text, p_uid bigint, p_asker bigint, p_node text, p_since timestamptz, p_limit bigint)
returns json language plpgsql stable set plan_cache_mode = force_custom_plan as $$
declare
	wanted bigint := case when p_run is not null then (wlb_run_readable(p_run, p_uid, p_asker)).id end;
begin
	return (with found as (
		select told.* from (select v, r.name from verdicts v join runs r on r.id = v.run_id
			where (wanted is null or r.id = wanted) and (p_uid is null or r.uid = p_uid)
				and (p_node is null or v.nodes @> array[p_node]) and (p_since is null or v.found_at >= p_since)
			order by v.found_at desc, v.id desc limit least(p_limit, 1000)) as newest,
			wlb_listed_fault_of(newest.v, newest.name) as told
		union all
		select told.* from (select f, r.name from faults f join runs r on r.id = f.run_id
			where (wanted is null or r.id = wanted) and (p_uid is null or r.uid = p_uid)
				and (p_node is null or f.node = p_node) and (p_since is null or f.detected_at >= p_since)
				and (not coalesce(f.proof ? 'evicted', false) or wlb_fault_verdict(f) is null)
			order by f.detected_at desc, f.id desc limit least(p_limit, 1000)) as newest,
			wlb_listed_fault_of(newest.f, newest.name) as told
	), listed as (
		select * from found order by told_at desc, id desc limit least(p_limit, 1000)
	)
	select json_build_object('faults', coalesce(json_agg(entry order by case when wanted is null then told_at end desc,
		case when wanted is null then id end desc, told_at, id), '[]')) from listed);
end $$;
