-- The reply to a check of a node says whether the node is avoided. All nodes of a cluster may report at once: each report reads
-- the evidence against its own node, and not against all of them.
--
-- Replaces: function wlb_node_check_put.

create function wlb_node_is_avoided(p_node text) returns boolean language sql stable as $$
	select coalesce(sum(weight) >= wlb_node_weight_to_avoid(), false) from node_evidence where node = p_node
$$;

-- A check that finds what an earlier one found, with nothing else found between them, is that one again. A node keeps its
-- newest 100 checks, and of older ones those that still count.
create or replace function wlb_node_check_put(p_node text, p_healthy boolean, p_reason text, p_checks json, p_clears boolean,
	p_uid bigint)
returns json language plpgsql as $$
declare
	v_failed text[] := wlb_kinds_failed(p_healthy, p_reason, p_checks);
	v_passed text[] := case when not p_clears then wlb_kinds_passed(p_checks) end;
begin
	update node_checks set checked_at = now(), checks = p_checks, uid = p_uid
	where id = (select id from node_checks c
		where node = p_node and (healthy, reason, clears, failed) = (p_healthy, p_reason, p_clears, v_failed)
			and passed is not distinct from v_passed and not exists (select from node_checks between_them
				where node = p_node and (healthy, reason, clears) <> (p_healthy, p_reason, p_clears)
					and (between_them.checked_at, between_them.id) > (c.checked_at, c.id))
		order by checked_at desc, id desc limit 1);
	if not found then
		insert into node_checks (node, healthy, reason, checks, clears, uid, failed, passed)
		values (p_node, p_healthy, p_reason, p_checks, p_clears, p_uid, v_failed, v_passed);
	end if;
	delete from node_checks where node = p_node and (checked_at, id) <= (
			select checked_at, id from node_checks where node = p_node order by checked_at desc, id desc offset 100 limit 1)
		and id not in (select check_id from node_findings where node = p_node
			union all (select id from node_checks where node = p_node and clears order by checked_at desc, id desc limit 1)
			union all (select distinct on (wlb_is_exact(passed, true)) id from node_checks
				where node = p_node and wlb_is_exact(passed, false) order by wlb_is_exact(passed, true), checked_at desc, id desc));
	return json_build_object('node', p_node, 'healthy', p_healthy,
		'avoided', wlb_node_is_avoided(p_node));
end $$;
