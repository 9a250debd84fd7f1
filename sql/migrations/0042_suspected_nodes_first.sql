-- wlb nodes lists nodes without weight too, such as all whose healthy checks are reported, up to a limit. Suspected ones come before
-- them, and the reply says how many are not listed.
--
-- Replaces: function wlb_nodes_list.

-- suspected: something failed on it and has not been ok since, or its products were not found exact by root or SlurmUser
-- since the last suspicion: those of its GPUs where the attempt computed on GPUs, or a report was of GPUs. The check that is
-- told is that of the newest finding or, where there is none, the newest.
create or replace function wlb_nodes_list(p_uid bigint, p_node text, p_limit bigint, p_avoids boolean) returns json
language sql stable as $$
	with losses as (
		select node, count(distinct run_id) as runs, max(detected_at) as at
		from faults where kind = 'node_lost' and proof ? 'seen' and node is not null and (p_node is null or node = p_node)
		group by node
	), failures as (
		select node, at, reason from node_failures where p_node is null or node = p_node
	), checks as (
		select node, max(checked_at) as at, bool_or(coalesce('gpus' = any(failed || passed), false)) as has_gpus,
			max(checked_at) filter (where wlb_is_exact(passed, false)) as exact_at,
			max(checked_at) filter (where wlb_is_exact(passed, true)) as gpus_exact_at
		from node_checks where p_node is null or node = p_node group by node
	), weights as (
		select node, sum(weight) as weight from node_evidence where p_node is null or node = p_node group by node
	), suspicions as (
		select node, max(at) as at, max(at) filter (where on_gpus) as gpus_at from wlb_node_suspicions()
		where p_node is null or node = p_node group by node
	), of_nodes as (
		select node, coalesce(weight, 0) as weight, coalesce(l.runs, 0) as losses, l.at as lost_at,
			case when c.node is not null then f.node is null end as healthy,
			case when c.node is not null then coalesce(f.reason, '') end as reason, coalesce(f.at, c.at) as checked_at,
			s.at as suspected_at, f.node is not null or coalesce(s.gpus_at > c.gpus_exact_at, s.gpus_at is not null)
				or coalesce(s.at > case when c.has_gpus then c.gpus_exact_at else c.exact_at end, s.at is not null) as suspected
		from losses l full join checks c using (node) full join suspicions s using (node) left join weights using (node)
			left join failures f using (node)
	), listed as (
		select *, count(*) over () as known from of_nodes
		order by weight desc, suspected desc, greatest(lost_at, checked_at, suspected_at) desc, node limit least(p_limit, 4096)
	)
	select json_build_object('avoid_from', case when p_avoids then wlb_node_weight_to_avoid() end,
		'not_listed', coalesce(max(known), 0) - count(*), 'nodes', coalesce(json_agg(json_build_object(
		'node', node, 'weight', wlb_real(weight), 'losses', losses, 'lost_at', wlb_time(lost_at), 'healthy', healthy,
		'reason', reason, 'checked_at', wlb_time(checked_at),
		'suspected', suspected, 'suspected_at', wlb_time(suspected_at),
		'history', case when p_node is not null then wlb_node_history(node, p_uid) end)
		order by weight desc, suspected desc, greatest(lost_at, checked_at, suspected_at) desc, node), '[]')) from listed
$$;
