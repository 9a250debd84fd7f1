-- Settings of a run that its user changes while it goes on.

-- Items KEY=VALUE of several lists with commas between them; null: none. Of a key the last item counts, and its place is
-- that of the first.
create function wlb_items_merge(variadic p_lists text[]) returns text language sql immutable as $$
	select string_agg(item, ',' order by first)
	from (select (array_agg(item order by list desc, place desc))[1] as item, min(list * 1000 + place) as first
		from unnest(p_lists) with ordinality as lists (items, list),
			unnest(string_to_array(items, ',')) with ordinality as entries (item, place)
		group by split_part(item, '=', 1)) as keys
$$;

-- The items of a list that another does not have.
create function wlb_items_without(p_items text, p_others text) returns text language sql immutable as $$
	select string_agg(item, ',' order by place)
	from unnest(string_to_array(p_items, ',')) with ordinality as entries (item, place)
	where item <> all (string_to_array(p_others, ','))
$$;

-- The account that changed a run of which it is not the owner is an administrator's.
create function wlb_changer(r runs, p_by bigint) returns text language sql immutable as $$
	select case p_by when r.uid then r.user_name when 0 then 'root' else format('SlurmUser (uid %s)', p_by) end
$$;

-- Changes what p_on_fault names. p_uid: the owner that the run must have, null for an administrator; p_by: the account
-- that asks. p_defaults: all items, as wlbd.conf has them. The lock is that of deliveries: rows that only refer to the run are
-- added meanwhile.
create function wlb_run_set(p_name text, p_uid bigint, p_by bigint, p_on_fault text, p_defaults text)
returns json language plpgsql as $$
declare
	r runs := wlb_run_actable(p_name, p_uid);
	before text;
	after text;
begin
	select * into r from runs where id = r.id for no key update;
	if r.state in ('complete', 'failed', 'out_of_nodes', 'cancelled') then
		raise exception using errcode = 'WL409', message = format(
			'run %s has ended (%s): a setting can be changed only while it goes on', p_name, r.state);
	end if;
	before := wlb_items_merge(p_defaults, r.policy->>'on_fault');
	update runs set settings = settings || jsonb_build_object('on_fault',
		wlb_items_merge(settings->>'on_fault', p_on_fault)) where id = r.id returning * into r;
	after := wlb_items_merge(p_defaults, r.policy->>'on_fault');
	if after <> before then
		perform wlb_event_add(r.id, (select id from attempts where run_id = r.id order by number desc limit 1),
			'settings_changed', format('on-fault: %s -> %s by %s', wlb_items_without(before, after),
				wlb_items_without(after, before), wlb_changer(r, p_by)), now());
		perform wlb_run_trim(r.id);
	end if;
	return json_build_object('run_pk', r.id, 'run_id', r.name, 'before', before, 'on_fault', after);
end $$;
