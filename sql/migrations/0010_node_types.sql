-- Finds the types of an attempt's nodes by what was measured of them, so that a job on nodes of several processors is
-- planned with the slowest.

-- Returns the types of the attempt's nodes without GPUs, each with the number of such nodes and the name of one. That a
-- node is of a type counts if root or SlurmUser measured it so, or the owner of the run, or three users; of several
-- types the one that was measured last. p_reader: the uid that the run must have, null: any.
create function wlb_attempt_node_types(p_attempt uuid, p_reader bigint) returns json language sql stable as $$
	with attempt as (
		select a.nodes, r.uid from attempts a join runs r on r.id = a.run_id
		where a.uuid = p_attempt and (p_reader is null or r.uid = p_reader)
	), measured as (
		select n.node, c.node_type, max(c.id) as newest
		from attempt a join calibrations c on c.nodes && a.nodes and c.node_type not like 'gpu%',
			unnest(c.nodes) as n(node)
		where n.node = any(a.nodes)
		group by n.node, c.node_type
		having bool_or(c.is_admin) or bool_or(c.uid = (select uid from attempt)) or count(distinct c.uid) >= 3
	), of_node as (
		select distinct on (node) node, node_type from measured order by node, newest desc
	), types as (
		select node_type, count(*) as nodes, min(node) as node from of_node group by node_type order by 2 desc, 1 limit 16
	)
	select json_build_object('node_types', coalesce((select json_agg(json_build_object(
		'node_type', node_type, 'nodes', nodes, 'node', node) order by nodes desc, node_type) from types), '[]'))
$$;
