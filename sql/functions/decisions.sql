-- What the decision on the next attempt needs to know of the past.

-- Whether a run or an attempt has steps is asked for by the first of them: `exists` reads the whole table where most rows are of one run.

-- Whether the run's trainer records what it does: wlb-worker, or another one that sends its attempts or its steps.
create function wlb_run_is_recorded(p_run bigint) returns boolean language sql stable as $$
	select exists (select from attempts where run_id = p_run and world_size is not null)
		or (select step from steps where run_id = p_run order by step limit 1) is not null
$$;

-- Whether what is recorded of its steps is what its trainer was heard to say: it may say little, or less than it does.
create function wlb_run_is_followed(p_run bigint) returns boolean language sql stable as $$
	select is_followed from runs where id = p_run
$$;

-- Also where a later attempt did these steps again.
create function wlb_attempt_has_steps(p_attempt bigint) returns boolean language sql stable as $$
	select (select step from steps where attempt_id = p_attempt order by step limit 1) is not null
		or (select step from steps_superseded where attempt_id = p_attempt order by step limit 1) is not null
$$;

-- Whether an attempt of a trainer that records nothing itself has lasted so long that it has worked. What it did is not known: 45
-- minutes stand for a new step. PyTorch ends a collective that does not end after 10 minutes, or 30, by its version and backend.
create function wlb_attempt_has_lasted(a attempts) returns boolean language sql stable as $$
	select a.ended_at - coalesce(a.started_at, a.created_at) >= interval '45 minutes'
		and (not wlb_run_is_recorded(a.run_id) or wlb_run_is_followed(a.run_id))
$$;

-- The number of the newest attempt before p_next that does not count as one without a new step; 0: there is none. One that
-- lost a node, its launcher or its script does not count against the program, nor does one that has saved and stopped (its next
-- has fewer steps to repeat), or whose job was queued again. The third loss of one node counts: it would be lost for ever.
create function wlb_last_progress(p_run bigint, p_next uuid) returns bigint language sql stable as $$
	with losses as materialized (
		select attempt_id, count(*) over (partition by node order by detected_at, id) as nth from faults
		where run_id = p_run and kind = 'node_lost'
	)
	select coalesce(max(number), 0) from attempts a
	where run_id = p_run and uuid is distinct from p_next and not wlb_has_completed(state, exit_code)
		and (new_steps > 0 or wlb_attempt_has_lasted(a::attempts) or queued_again or wlb_has_saved_and_stopped(state, exit_code)
			or exists (select from losses l where l.attempt_id = a.id and l.nth <= 2)
			or exists (select from faults f join fault_kinds k on k.name = f.kind
				where f.attempt_id = a.id and f.cause and k.is_launcher))
$$;

-- How many attempts in a row, the newest first, ended without a new step.
create function wlb_attempts_without_progress(p_run bigint, p_next uuid) returns bigint
language sql stable as $$
	select count(*) from attempts
	where run_id = p_run and uuid <> p_next and not wlb_has_completed(state, exit_code)
		and number > (select wlb_last_progress(p_run, p_next))
$$;

-- The last step that was done when a rank died; -1: it is not known. p_reported is 0, or null, until a rank of the node has
-- done a step in the attempt. An attempt without a recorded step then had done none since its start, which is 0 or a
-- checkpoint. A trainer that records nothing itself and reports no step is always at 0, which says nothing of where it was.
create function wlb_crash_step(a attempts, p_reported bigint) returns bigint language sql stable as $$
	select case
		when p_reported > 0 then p_reported
		when wlb_run_is_recorded(a.run_id) and not wlb_run_is_followed(a.run_id) and not wlb_attempt_has_steps(a.id)
			then coalesce(a.resumed_step, 0)
		else -1 end
$$;

-- Whether a node has passed a check in the run since then.
create function wlb_run_node_passed(p_run bigint, p_node text, p_since timestamptz) returns boolean language sql stable as $$
	select exists (select from run_node_checks
		where run_id = p_run and node = p_node and healthy and checked_at > p_since)
$$;

-- Deaths of ranks, and steps that failed for the sake of one node, such as a launch there, which says nothing of the program:
-- its step is not known. in_row: its attempt is one of those in a row without progress; later_progress: how many attempts after
-- it had a new step.
create function wlb_run_crashes(p_run bigint, p_max bigint) returns json language sql stable as $$
	with newest as (
		select attempt_id, kind, node, step, detected_at from faults
		where run_id = p_run and cause and node is not null
			and (kind = 'rank_lost' or (kind = 'step_failed' and coalesce(proof ? 'step_broken', false)))
			and not wlb_run_node_passed(p_run, node, detected_at)
		order by detected_at desc limit p_max
	), progress as materialized (
		select number from attempts where run_id = p_run and new_steps > 0
	), last as materialized (
		select wlb_last_progress(p_run, null) as number
	)
	select coalesce(json_agg(json_build_object('node', c.node,
		'step', case when c.kind = 'rank_lost' then wlb_crash_step(a, c.step) else -1 end,
		'age_s', greatest(extract(epoch from now() - c.detected_at), 0), 'in_row', a.number > last.number,
		'later_progress', (select count(*) from progress p where p.number > a.number)) order by c.detected_at desc), '[]')
	from newest c join attempts a on a.id = c.attempt_id cross join last
$$;

-- Nodes for whose sake wlbd ended an attempt, the newest first.
create function wlb_run_evictions(p_run bigint, p_max bigint) returns json language sql stable as $$
	select coalesce(json_agg(json_build_object('node', node, 'kind', kind, 'step', coalesce(step, -1),
		'age_s', greatest(extract(epoch from now() - detected_at), 0)) order by detected_at desc), '[]')
	from (select node, kind, step, detected_at from faults
		where run_id = p_run and cause and proof ? 'evicted' and node is not null
			and not wlb_run_node_passed(p_run, node, detected_at)
		order by detected_at desc limit p_max) as newest
$$;

-- A hang in a collective may name ranks of several nodes. `wlb run` then checks the links between the nodes of the job, and
-- wlbd records the node whose link is broken: the next attempt leaves it out.
create function wlb_unplaced_fault(p_run bigint) returns bigint language sql stable as $$
	select f.id from faults f
	where f.cause and f.proof ? 'evicted' and f.node is null
		and f.attempt_id = (select id from attempts where run_id = p_run and launched order by number desc limit 1)
$$;

-- The step of the fault that has no node yet, and the names of the nodes of its attempt; null: there is no such fault.
create function wlb_unplaced_json(p_run bigint) returns json language sql stable as $$
	select json_build_object('step', f.step, 'nodes', coalesce((a.decision->'nodes')::json, to_json(a.nodes)))
	from faults f join attempts a on a.id = f.attempt_id where f.id = wlb_unplaced_fault(p_run)
$$;

-- Names the node of the fault that had none. The reason of the attempt, p_sentence, then names that node, and no others that waited for it.
create function wlb_fault_place(p_run bigint, p_node text, p_why text, p_sentence text) returns void language plpgsql as $$
declare
	placed faults;
begin
	update faults set node = p_node, detail = left(coalesce(nullif(detail, '') || '; ', '') || p_why, 4096),
		sentence = p_sentence
	where id = wlb_unplaced_fault(p_run) returning * into placed;
	if placed.id is not null then
		perform wlb_attempt_settle(placed.attempt_id);
	end if;
end $$;

-- p_previous: the attempt that the launcher which asks has had before; null: none. A node that was lost and has passed a check
-- since is not counted as lost.
create function wlb_run_past(p_name text, p_uuid uuid, p_previous uuid, p_uid bigint, p_admin boolean)
returns json language plpgsql stable as $$
declare
	r runs := wlb_run_found(p_name, p_uid, p_admin);
	previous attempts;
begin
	if exists (select from attempts where uuid = p_uuid and run_id <> r.id) then
		raise exception using errcode = 'WL409', message = format(
			'attempt %s is of another run than %s; make a new attempt_id', p_uuid, p_name);
	end if;
	select * into previous from attempts where uuid = p_previous and run_id = r.id;
	return (with node_losses as (
		select node, count(*) as losses from faults
		where run_id = r.id and node is not null and cause and kind = 'node_lost'
			and not wlb_run_node_passed(r.id, node, detected_at) group by node
	), newest as (
		select step, path from checkpoints where run_id = r.id order by step desc, id desc limit 1
	)
	select json_build_object(
		'run_pk', r.id, 'uid', r.uid, 'confirmed', r.confirmed, 'job_id', r.job_id, 'state', r.state, 'reason', r.reason,
		'closed', coalesce(r.ended_by = 'launcher', false),
		'attempts', (select count(*) from attempts where run_id = r.id),
		'decision', (select decision from attempts where uuid = p_uuid),
		-- The newest attempt after the launcher's that wlbd let a launcher start.
		'newer', (select uuid from attempts where run_id = r.id and launched and number > previous.number
			order by number desc limit 1),
		-- The job has been queued again since, and its next launcher has not asked yet.
		'requeued', coalesce(r.requeued_at > previous.created_at, false),
		'first_total', coalesce((select cardinality(nodes) + cardinality(spares) from attempts
			where run_id = r.id and launched order by number limit 1), 0),
		'attempts_without_progress', wlb_attempts_without_progress(r.id, p_uuid),
		'has_lasted', exists (select from attempts a where a.run_id = r.id and wlb_attempt_has_lasted(a)),
		'node_losses', (select coalesce(json_object_agg(node, losses), '{}') from node_losses),
		'crashes', wlb_run_crashes(r.id, 256), 'evictions', wlb_run_evictions(r.id, 256),
		'checkpoint', (select json_build_object('step', step, 'path', path) from newest),
		'on_fault', r.policy->>'on_fault', 'unplaced', wlb_unplaced_json(r.id), 'avoided', wlb_nodes_avoided(),
		'since_end_s', (select greatest(extract(epoch from now() - max(ended_at)), 0)::float8 from attempts
			where run_id = r.id and ended_at is not null),
		-- Nodes that have passed a check before.
		'given_back', (select coalesce(json_object_agg(node, true), '{}') from (select distinct node
			from run_node_checks where run_id = r.id and healthy) as passed)));
end $$;
