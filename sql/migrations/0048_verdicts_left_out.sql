-- A reply with the newest verdicts of a run counts the others, as it does those of the other lists.
--
-- Replaces: function wlb_left_out_json.

create or replace function wlb_left_out_json(r runs) returns json language sql stable as $$
	select json_build_object(
		'attempts', greatest((select count(*) from attempts where run_id = r.id) - 1000, 0),
		'faults', greatest((select count(*) from faults where run_id = r.id) - 1000, 0),
		'checkpoints', greatest((select count(*) from checkpoints where run_id = r.id) - 1000, 0),
		'events', greatest((select count(*) from events where run_id = r.id) - 1000, 0),
		'verdicts', greatest((select count(*) from verdicts where run_id = r.id) - 200, 0))
$$;
