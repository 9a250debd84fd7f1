-- An attempt that has saved and stopped when it was asked to, before the end of its job: state `ended` with exit code 85
-- or, of another trainer than wlb-worker, 0. Its job is queued again.

create function wlb_has_saved_and_stopped(p_state text, p_exit_code integer) returns boolean language sql immutable as $$
	select p_state = 'ended' and coalesce(p_exit_code in (0, 85), false)
$$;

-- How many attempts in a row, the newest first, ended without a new step. One that lost a node, its launcher or its
-- script does not count against the program, nor does one that has saved and stopped: its next has fewer steps to repeat.
create or replace function wlb_attempts_without_progress(p_run bigint, p_next uuid) returns bigint
language sql stable as $$
	with ended as (
		select a.number, a.new_steps = 0 and not wlb_has_saved_and_stopped(a.state, a.exit_code)
			and not exists (select from faults f where f.attempt_id = a.id
				and (f.kind = 'node_lost' or (f.cause and f.kind in ('launcher_lost', 'script_lost')))) as no_progress
		from attempts a where a.run_id = p_run and a.uuid <> p_next and a.state <> 'complete'
	)
	select count(*) from ended where number > coalesce((select max(number) from ended where not no_progress), 0)
$$;

alter function wlb_record_attempt_end(attempts, text, jsonb, timestamptz) rename to wlb_record_attempt_over;

-- The run then waits for its job to start again, unless its launcher says otherwise.
create function wlb_record_attempt_end(a attempts, p_source text, d jsonb, p_time timestamptz)
returns void language plpgsql as $$
begin
	perform wlb_record_attempt_over(a, p_source, d, p_time);
	update runs set state = 'restarting'
	where id = a.run_id and state = 'running' and p_source = 'run'
		and wlb_has_saved_and_stopped(d->>'state', (d->>'exit_code')::integer)
		and not exists (select from attempts where run_id = a.run_id and number > a.number);
end $$;
