-- Faults: stored once, and the one that broke an attempt, from those recorded, whatever their source and order. What one says for
-- itself is judged by coordinator/wlbd/rules/cause.c; here it is stored and compared.

-- A time of wlbd's judgement, which by its clock may be ahead of this one's; null where the judgement has none.
create function wlb_judged_time(p_judged jsonb, p_key text) returns timestamptz language sql stable as $$
	select case when p_judged ? p_key then least(coalesce(to_timestamp((p_judged->>p_key)::float8), '-infinity'), now()) end
$$;

-- p_judged: what wlbd has judged of it. A loss that is reported again is stored once, with what wlbd knows of it added: what is
-- never the cause stays so, and a time that is known stays where the newer report has none. What wlbd ended the attempt for is
-- stored once, too: the statement is sent again where its reply was lost. Call wlb_attempt_settle afterwards.
create function wlb_fault_insert(p_attempt bigint, p_kind text, p_rank integer, p_node text, p_step bigint,
	p_detail text, p_evidence jsonb, p_proof jsonb, p_time timestamptz, p_judged jsonb)
returns void language sql as $$
	insert into faults (run_id, attempt_id, kind, is_loss, rank, node, step, detail, evidence, proof, detected_at,
		sentence, strength, late, follow, killed_at, lost_from)
	select run_id, id, p_kind, (select is_loss from fault_kinds where name = p_kind), p_rank, p_node, p_step, p_detail, p_evidence,
		p_proof, p_time, p_judged->>'sentence', (p_judged->>'strength')::smallint,
		make_interval(secs => coalesce((p_judged->>'late_s')::float8, 0)), make_interval(secs => (p_judged->>'follow_s')::float8),
		wlb_judged_time(p_judged, 'killed_at'), wlb_judged_time(p_judged, 'lost_from')
	from attempts where id = p_attempt
		and not (coalesce(p_proof ? 'evicted', false) and exists (select from faults f where f.attempt_id = p_attempt
			and f.kind = p_kind and f.rank is not distinct from p_rank and f.detected_at = p_time and f.proof ? 'evicted'))
	on conflict (attempt_id, kind, coalesce(node, ''), coalesce(rank, -1)) where is_loss
		do update set proof = coalesce(faults.proof, '{}') || excluded.proof, detail = excluded.detail,
			step = coalesce(faults.step, excluded.step),
			detected_at = case when excluded.proof ? 'seen' and not coalesce(faults.proof ? 'seen', false)
				then excluded.detected_at else faults.detected_at end,
			sentence = excluded.sentence, follow = excluded.follow,
			strength = case when faults.strength is not null then excluded.strength end,
			killed_at = coalesce(nullif(excluded.killed_at, '-infinity'), faults.killed_at, excluded.killed_at),
			lost_from = coalesce(nullif(excluded.lost_from, '-infinity'), faults.lost_from, excluded.lost_from)
		where excluded.proof is not null and not coalesce(faults.proof, '{}') @> excluded.proof
$$;

-- A fault that wlbd has found. A lost node that wlbd has asked itself is `seen`: that is evidence in the runs of all users, unless the job
-- was over (job_over), or Slurm has not said since wlbd's start that the node is the job's (job_unknown) and wlbd did not start the
-- attempt on it. p_time is by wlbd's clock; one ahead of the database's would make a fault newer than the check that follows it.
create function wlb_fault_found(p_attempt bigint, p_kind text, p_rank integer, p_node text, p_step bigint,
	p_detail text, p_proof jsonb, p_time timestamptz, p_judged jsonb)
returns void language sql as $$
	select wlb_attempt_lock(p_attempt);
	select wlb_fault_insert(p_attempt, p_kind, p_rank, p_node, p_step, p_detail, null,
		case when p_kind = 'node_lost' and not coalesce(p_proof ? 'job_over', false)
				and (not coalesce(p_proof ? 'job_unknown', false) or wlb_attempt_has_node(p_attempt, p_node))
			then coalesce(p_proof, '{}') || '{"seen":true}' else p_proof end, least(p_time, now()), p_judged);
	select wlb_attempt_settle(p_attempt)
$$;

-- The strongest fault that no other one explains, and of several the earliest.
create function wlb_attempt_cause(p_attempt bigint) returns bigint language sql stable as $$
	with f as (
		select * from faults where attempt_id = p_attempt and strength is not null
	), others as (
		select min(killed_at) as killed_at, min(lost_from) as lost_from from f
	)
	select id from f, others as o
	where coalesce(f.detected_at + f.follow < o.killed_at, true)
		and (f.lost_from is not null or coalesce(f.detected_at < o.lost_from, true))
	order by strength desc, detected_at - late, id limit 1
$$;

-- Marks the cause of an attempt, and sets the reasons of attempt and run to it.
create function wlb_attempt_settle(p_attempt bigint) returns void language plpgsql as $$
declare
	a attempts;
	c faults;
begin
	perform wlb_attempt_lock(p_attempt);
	select * into a from attempts where id = p_attempt;
	select * into c from faults where id = wlb_attempt_cause(p_attempt);
	if c.id is null then
		return;
	end if;
	update faults set cause = false where attempt_id = p_attempt and cause and id <> c.id;
	update faults set cause = true where id = c.id and not cause;
	if a.state not in ('failed', 'ended', 'lost') or c.sentence = a.reason or (c.strength = 0 and a.reason <> '') then
		return;
	end if;
	update attempts set reason = c.sentence where id = p_attempt;
	update runs set reason = case
		when a.reason <> '' and strpos(reason, a.reason) > 0 then wlb_reason_with(reason, a.reason, c.sentence)
		when a.told <> '' and strpos(reason, a.told) > 0 then wlb_reason_with(reason, a.told, c.sentence)
		when a.reason = '' and ended_by = 'slurm' then concat_ws('; ', c.sentence, nullif(reason, ''))
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

-- p_is_private: the asker may read errors. The error of an attempt is told with its cause.
create function wlb_listed_fault_of(f faults, p_run text, p_is_private boolean) returns wlb_listed_fault language sql stable as $$
	select row(f.detected_at, f.id, json_build_object('run_id', p_run, 'source', 'fault',
		'attempt', (select number from attempts where id = f.attempt_id), 'time', wlb_time(f.detected_at), 'kind', f.kind,
		'state', 'confirmed', 'ranks', array_remove(array[f.rank, f.peer_rank], null),
		'rank_count', num_nonnulls(f.rank, f.peer_rank), 'nodes', array_remove(array[f.node], null),
		'collective', f.collective, 'step', f.step, 'evidence', coalesce(nullif(f.detail, ''), f.sentence),
		'cause', f.cause, 'error', case when f.cause and p_is_private then wlb_attempt_error_json(f.attempt_id) end))::wlb_listed_fault
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
-- (null: of all), the newest first. p_is_admin: the asker, p_asker, is SlurmUser or root. p_node and p_since may be null. A fault for which wlbd ended its attempt is told as the verdict that it was.
create function wlb_faults_list(p_run text, p_uid bigint, p_asker bigint, p_node text, p_since timestamptz, p_limit bigint,
	p_is_admin boolean)
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
		select told.* from (select f, r.name, p_is_admin or r.uid = p_asker as is_private from faults f join runs r on r.id = f.run_id
			where (wanted is null or r.id = wanted) and (p_uid is null or r.uid = p_uid)
				and (p_node is null or f.node = p_node) and (p_since is null or f.detected_at >= p_since)
				and (not coalesce(f.proof ? 'evicted', false) or wlb_fault_verdict(f) is null)
			order by f.detected_at desc, f.id desc limit least(p_limit, 1000)) as newest,
			wlb_listed_fault_of(newest.f, newest.name, newest.is_private) as told
	), listed as (
		select * from found order by told_at desc, id desc limit least(p_limit, 1000)
	)
	select json_build_object('faults', coalesce(json_agg(entry order by case when wanted is null then told_at end desc,
		case when wanted is null then id end desc, told_at, id), '[]')) from listed);
end $$;
