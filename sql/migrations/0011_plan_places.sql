-- Finds where an attempt was started, so that wlbd refuses plans whose ranks are elsewhere before it stores them.
--
-- Replaces: function wlb_record_plan, which compared a plan with the sums alone.

-- The nodes and tasks that wlbd decided on (null where the attempt began while wlbd was away), and how many ranks rank 0
-- recorded on each node (null until all of them are known, and where they are on more than 65,536 nodes).
create function wlb_attempt_places(p_attempt bigint) returns json language sql stable as $$
	select json_build_object('nodes', a.decision->'nodes', 'tasks_per_node', a.decision->'tasks_per_node',
		'ranks_on', (select json_object_agg(node, ranks) from (
			select node, count(*) as ranks from rank_map where attempt_id = a.id group by node) as counted
			having sum(ranks) = a.world_size and count(*) <= 65536))
	from attempts a where a.id = p_attempt
$$;

-- Stores a plan. The attempt has the plan's layout until rank 0 reports its own.
create or replace function wlb_record_plan(a attempts, d jsonb, p_time timestamptz) returns void language plpgsql as $$
begin
	update attempts set plan = wlb_plain(d) where id = a.id;
	update attempts set tp = (d->'layout'->>'tp')::integer, cp = (d->'layout'->>'cp')::integer,
		pp = (d->'layout'->>'pp')::integer, dp = (d->'layout'->>'dp')::integer
	where id = a.id and world_size is null;
end $$;
