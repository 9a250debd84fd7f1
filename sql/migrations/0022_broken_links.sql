-- A hang in a collective may name ranks of several nodes. `wlb run` then checks the links between the nodes of the job, and
-- wlbd records the node whose link is broken: the next attempt leaves it out.

create function wlb_unplaced_fault(p_run bigint) returns bigint language sql stable as $$
	select f.id from faults f
	where f.cause and f.proof ? 'evicted' and f.node is null
		and f.attempt_id = (select id from attempts where run_id = p_run and launched order by number desc limit 1)
$$;

create or replace function wlb_run_past(p_name text, p_uuid uuid, p_uid bigint, p_admin boolean) returns json language sql stable as $$
	with past as (
		select wlb_run_history(p_name, p_uuid, p_uid, p_admin) as fields
	)
	select json_object_agg(key, value) from (
		select key, value from past, json_each(past.fields)
		union all
		select 'on_fault', to_json(r.policy->>'on_fault')
		from past join runs r on r.id = (past.fields->>'run_pk')::bigint
		union all
		select 'unplaced', to_json(wlb_unplaced_fault((past.fields->>'run_pk')::bigint) is not null) from past) as fields
$$;

-- The reason of the attempt then names that node, and no others that waited for it.
create function wlb_fault_place(p_run bigint, p_node text, p_why text) returns void language plpgsql as $$
declare
	placed faults;
begin
	update faults set node = p_node, detail = left(coalesce(nullif(detail, '') || '; ', '') || p_why, 4096),
		proof = proof || jsonb_build_object('evicted', p_why || coalesce(': ranks hang at step ' || step, ''))
	where id = wlb_unplaced_fault(p_run) returning * into placed;
	if placed.id is not null then
		perform wlb_attempt_settle(placed.attempt_id);
	end if;
end $$;
