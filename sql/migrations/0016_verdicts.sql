-- What wlbd finds from the timings of ranks: verdicts, of which some end an attempt.
--
-- Replaces: wlb_attempt_cause, wlb_fault_text, wlb_run_history, wlb_attempt_card, wlb_run_json.

alter table faults drop constraint faults_kind_check;
alter table faults add constraint faults_kind_check check (kind in ('rank_lost', 'node_lost', 'step_failed',
	'launcher_lost', 'script_lost', 'hang', 'slow_rank', 'slow_node', 'slow_link', 'slow_loader', 'bad_values'));
alter table runs add column dropped_verdicts bigint not null default 0;

create table verdicts (
	id bigint generated always as identity primary key,
	run_id bigint not null references runs on delete cascade,
	attempt_id bigint not null references attempts on delete cascade,
	watcher bigint not null,                 -- the start of wlbd that found it: milliseconds since 1970
	number bigint not null,                  -- of the verdict, in that start of wlbd and that attempt
	kind text not null check (kind in ('crash', 'hang', 'hang_in_communication', 'deadlock', 'slow_compute',
		'slow_node', 'slow_link', 'slow_nic', 'slow_loader', 'slow_storage', 'bad_values')),
	state text not null check (state in ('suspected', 'confirmed', 'over')),
	ranks integer[] not null default '{}',   -- the first 16; of a pair: source, destination
	rank_count integer not null default 0,   -- in all
	nodes text[] not null default '{}',      -- of these ranks, without repetition
	collective text,                         -- the communicator
	sequence bigint,                         -- of its call
	step bigint,                             -- since which
	cost_percent double precision,           -- what the run loses by it; null: not known
	certainty double precision not null,     -- 0 to 1
	evidence text not null,
	action text not null check (action in ('report', 'evict')),
	began_at timestamptz not null,           -- as far as reports tell
	found_at timestamptz not null,           -- suspected or confirmed first
	confirmed_at timestamptz,
	over_at timestamptz,
	unique (attempt_id, watcher, number)
);
create index on verdicts (run_id, id);
create index on verdicts using gin (nodes);

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

-- The verdicts of an attempt end with it, whichever way that becomes known.
create function wlb_verdicts_end(p_attempt bigint, p_time timestamptz) returns void language sql as $$
	delete from verdicts where attempt_id = p_attempt and state = 'suspected';
	update verdicts set state = 'over', over_at = p_time where attempt_id = p_attempt and state = 'confirmed'
$$;

create function wlb_attempt_has_ended() returns trigger language plpgsql as $$
begin
	perform wlb_verdicts_end(new.id, new.ended_at);
	return null;
end $$;

create trigger attempts_end_verdicts after update of ended_at on attempts
	for each row when (old.ended_at is null and new.ended_at is not null) execute function wlb_attempt_has_ended();

create function wlb_verdict_json(v verdicts, p_attempt integer) returns json language sql stable as $$
	select json_build_object('attempt', p_attempt, 'kind', v.kind, 'state', v.state, 'ranks', v.ranks,
		'rank_count', v.rank_count, 'nodes', v.nodes, 'collective', v.collective, 'sequence', v.sequence,
		'step', v.step, 'cost_percent', wlb_real(v.cost_percent), 'certainty', wlb_real(v.certainty),
		'evidence', v.evidence, 'action', v.action, 'began_at', wlb_time(v.began_at), 'found_at', wlb_time(v.found_at),
		'confirmed_at', wlb_time(v.confirmed_at), 'over_at', wlb_time(v.over_at))
$$;

create function wlb_verdicts_json(p_run bigint) returns json language sql stable as $$
	select coalesce(json_agg(wlb_verdict_json(v, (select number from attempts where id = v.attempt_id))
		order by v.id), '[]')
	from (select * from verdicts where run_id = p_run order by id desc limit 200) as v
$$;

-- ---- what broke an attempt ---------------------------------------------------------------------------------------

-- The keys of faults.proof, in addition to those of 0006: evicted (wlbd ended the attempt because of it).
--
-- A fault for which wlbd ended an attempt is stronger than the ends of ranks, which follow from it, and weaker than a
-- lost node, by which a rank may have hung.
create or replace function wlb_attempt_cause(p_attempt bigint) returns bigint language sql stable as $$
	with f as (
		select id, kind, detected_at, coalesce(proof, '{}') as e from faults where attempt_id = p_attempt
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
			when ended_by_itself and detected_at < alive_at - interval '0.5 s' then 0
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

create or replace function wlb_fault_text(f faults) returns text language sql immutable as $$
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

-- ---- what the next decision needs to know of the past -------------------------------------------------------------

-- Nodes for whose sake wlbd ended an attempt, the newest first.
create function wlb_run_evictions(p_run bigint, p_most bigint) returns json language sql stable as $$
	select coalesce(json_agg(json_build_object('node', node, 'kind', kind, 'step', coalesce(step, -1),
		'age_s', greatest(extract(epoch from now() - detected_at), 0)) order by detected_at desc), '[]')
	from (select node, kind, step, detected_at from faults
		where run_id = p_run and cause and proof ? 'evicted' and node is not null
		order by detected_at desc limit p_most) as newest
$$;

create or replace function wlb_run_history(p_name text, p_uuid uuid, p_uid bigint, p_admin boolean)
returns json language plpgsql stable as $$
declare
	r runs := wlb_run_found(p_name, p_uid, p_admin);
begin
	if exists (select from attempts where uuid = p_uuid and run_id <> r.id) then
		raise exception using errcode = 'WL409', message = format(
			'attempt %s is of another run than %s; make a new attempt_id', p_uuid, p_name);
	end if;
	return (with node_losses as (
		select node, count(*) as losses from faults
		where run_id = r.id and node is not null and cause and kind = 'node_lost' group by node
	), newest as (
		select step, path from checkpoints where run_id = r.id order by step desc, id desc limit 1
	)
	select json_build_object(
		'run_pk', r.id, 'uid', r.uid, 'confirmed', r.confirmed, 'job_id', r.job_id, 'state', r.state, 'reason', r.reason,
		'closed', coalesce(r.ended_by = 'launcher', false),
		'attempts', (select count(*) from attempts where run_id = r.id),
		'decision', (select decision from attempts where uuid = p_uuid),
		'newest', (select uuid from attempts where run_id = r.id and launched order by number desc limit 1),
		-- The job has been queued again since, and its next launcher has not asked yet.
		'requeued', coalesce(r.requeued_at > (select max(created_at) from attempts where run_id = r.id and launched),
			false),
		'first_total', coalesce((select cardinality(nodes) + cardinality(spares) from attempts
			where run_id = r.id and launched order by number limit 1), 0),
		'attempts_without_progress', wlb_attempts_without_progress(r.id, p_uuid),
		'node_losses', (select coalesce(json_object_agg(node, losses), '{}') from node_losses),
		'crashes', wlb_run_crashes(r.id, 256), 'evictions', wlb_run_evictions(r.id, 256),
		'checkpoint', (select json_build_object('step', step, 'path', path) from newest)));
end $$;

-- ---- what wlbd keeps in memory of an attempt -----------------------------------------------------------------------

create or replace function wlb_attempt_card(p_attempt bigint) returns json language sql stable as $$
	select json_build_object('run_pk', r.id, 'run', r.name, 'job_id', r.job_id, 'uid', r.uid,
		'confirmed', r.confirmed, 'attempt_pk', a.id, 'attempt', a.number, 'attempt_id', a.uuid, 'state', a.state,
		'reason', a.reason, 'slurm_step', a.slurm_step, 'nodes', to_json(a.nodes),
		'world_size', coalesce(a.world_size,
			cardinality(a.nodes) * (a.decision->>'tasks_per_node')::integer),
		'layout', wlb_layout_json(a.tp, a.cp, a.pp, a.dp), 'on_fault', r.policy->>'on_fault',
		'min_nodes', coalesce((r.policy->>'min_nodes')::integer, 0), 'spares', cardinality(a.spares),
		'rank_nodes', (select json_agg(node order by rank) from rank_map where attempt_id = a.id
			having max(rank) = count(*) - 1))
	from attempts a join runs r on r.id = a.run_id where a.id = p_attempt
$$;

-- ---- what a run shows ---------------------------------------------------------------------------------------------

-- Not jsonb, which would print a loss of 1e100 as an integer of 101 digits.
create or replace function wlb_run_json(p_name text, p_uid bigint, p_steps boolean, p_asker bigint default null)
returns json language plpgsql stable as $$
declare
	r runs := wlb_run_readable(p_name, p_uid, p_asker);
	last attempts;
	story json;
begin
	select * into last from attempts where run_id = r.id order by number desc limit 1;
	story := json_build_object('run_id', r.name, 'id', r.id, 'job_id', r.job_id, 'job_name', r.job_name,
		'user', r.user_name, 'cluster', r.cluster, 'state', r.state, 'reason', r.reason,
		'restart_count', r.restart_count, 'submitted_at', wlb_time(r.submitted_at),
		'started_at', wlb_time(r.started_at), 'ended_at', wlb_time(r.ended_at),
		'policy', wlb_plain_within(r.policy, 65536), 'model', wlb_plain_within(r.model, 65536),
		'seq_length', r.seq_length_tokens, 'global_batch_size', r.global_batch_size, 'train_iters', r.train_iters,
		'nodes', coalesce(last.nodes, '{}'), 'layout', wlb_layout_json(last.tp, last.cp, last.pp, last.dp),
		'rank_map', wlb_rank_map_json(last.id),
		'steps_done', r.steps, 'first_step', r.first_step, 'last_step', r.last_step,
		'first_loss', wlb_real(r.first_loss), 'last_loss', wlb_real(r.last_loss), 'steps_repeated', r.steps_repeated,
		'tokens', wlb_whole(r.tokens), 'attempts', wlb_attempts_json(r.id), 'faults', wlb_faults_json(r.id),
		'verdicts', wlb_verdicts_json(r.id),
		'checkpoints', wlb_checkpoints_json(r.id), 'events', wlb_events_json(r.id),
		'left_out', wlb_left_out_json(r),
		'dropped', json_build_object('events', r.dropped_events, 'faults', r.dropped_faults,
			'checkpoints', r.dropped_checkpoints, 'evidence', r.dropped_evidence,
			'verdicts', r.dropped_verdicts));
	if p_steps then
		select json_object_agg(key, value) into story from (
			select key, value from json_each(story)
			union all select 'steps', wlb_steps_newest(r.id)) as fields;
	end if;
	return story;
end $$;
