-- A crash before the first step of an attempt has a step, too: that from which the attempt began.
--
-- Replaces: wlb_run_crashes.

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

create or replace function wlb_run_crashes(p_run bigint, p_most bigint) returns json language sql stable as $$
	select coalesce(json_agg(json_build_object('node', newest.node, 'step', wlb_crash_step(a, newest.step),
		'age_s', greatest(extract(epoch from now() - detected_at), 0)) order by detected_at desc), '[]')
	from (select attempt_id, node, step, detected_at from faults
		where run_id = p_run and cause and kind = 'rank_lost' and node is not null
			and not wlb_run_node_passed(p_run, node, detected_at)
		order by detected_at desc limit p_most) as newest
	join attempts a on a.id = newest.attempt_id
$$;
