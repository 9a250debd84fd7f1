-- A crash before the first step of an attempt has a step, too: that from which the attempt began. Crashes of which one was before
-- the run made progress have nothing to do with each other.
--
-- Replaces: wlb_attempts_without_progress, wlb_run_crashes.

-- ---- attempts in a row ------------------------------------------------------------------------------------------------

-- The number of the newest attempt before p_next that does not count as one without a new step; 0: there is none. One that
-- lost a node, its launcher or its script does not count against the program, nor does one that has saved and stopped: its
-- next has fewer steps to repeat.
create function wlb_last_progress(p_run bigint, p_next uuid) returns bigint language sql stable as $$
	select coalesce(max(number), 0) from attempts a
	where run_id = p_run and uuid is distinct from p_next and state <> 'complete'
		and (new_steps > 0 or wlb_has_saved_and_stopped(state, exit_code)
			or exists (select from faults f where f.attempt_id = a.id
				and (f.kind = 'node_lost' or (f.cause and f.kind in ('launcher_lost', 'script_lost')))))
$$;

-- How many attempts in a row, the newest first, ended without a new step.
create or replace function wlb_attempts_without_progress(p_run bigint, p_next uuid) returns bigint
language sql stable as $$
	select count(*) from attempts
	where run_id = p_run and uuid <> p_next and state <> 'complete' and number > (select wlb_last_progress(p_run, p_next))
$$;

-- ---- crashes ----------------------------------------------------------------------------------------------------------

-- Whether the run's trainer records what it does: wlb-worker, or another one that sends its attempts or its steps.
create function wlb_run_is_recorded(p_run bigint) returns boolean language sql stable as $$
	select exists (select from attempts where run_id = p_run and world_size is not null)
		or exists (select from steps where run_id = p_run)
$$;

-- Also where a later attempt did these steps again.
create function wlb_attempt_has_steps(p_attempt bigint) returns boolean language sql stable as $$
	select exists (select from steps where attempt_id = p_attempt)
		or exists (select from steps_superseded where attempt_id = p_attempt)
$$;

-- The last step that was done when a rank died; -1: it is not known. p_reported is 0, or null, until a rank of the node has
-- done a step in the attempt. An attempt without a recorded step then had done none since its start, which is 0 or a
-- checkpoint. A trainer that records nothing and reports no step is always at 0, which says nothing of where it was.
create function wlb_crash_step(a attempts, p_reported bigint) returns bigint language sql stable as $$
	select case
		when p_reported > 0 then p_reported
		when wlb_run_is_recorded(a.run_id) and not wlb_attempt_has_steps(a.id) then coalesce(a.resumed_step, 0)
		else -1 end
$$;

-- in_row: its attempt is one of those in a row without progress; later_progress: how many attempts after it had a new step.
create or replace function wlb_run_crashes(p_run bigint, p_most bigint) returns json language sql stable as $$
	with newest as (
		select attempt_id, node, step, detected_at from faults
		where run_id = p_run and cause and kind = 'rank_lost' and node is not null
			and not wlb_run_node_passed(p_run, node, detected_at)
		order by detected_at desc limit p_most
	), progress as materialized (
		select number from attempts where run_id = p_run and new_steps > 0
	), last as materialized (
		select wlb_last_progress(p_run, null) as number
	)
	select coalesce(json_agg(json_build_object('node', c.node, 'step', wlb_crash_step(a, c.step),
		'age_s', greatest(extract(epoch from now() - c.detected_at), 0), 'in_row', a.number > last.number,
		'later_progress', (select count(*) from progress p where p.number > a.number)) order by c.detected_at desc), '[]')
	from newest c join attempts a on a.id = c.attempt_id cross join last
$$;
