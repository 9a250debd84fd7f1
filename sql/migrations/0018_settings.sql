-- Settings of a run that its user changes while it goes on; what `wlb faults` lists; verdicts for SQL and Grafana.

-- ---- settings ------------------------------------------------------------------------------------------------------

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

-- What `wlb set` changed, which is stronger than the options of the job.
alter table runs add column settings jsonb not null default '{}';

-- Several functions store options of the job in `policy`, for example when it is queued again: the trigger keeps the
-- settings above them.
create function wlb_settings_prevail() returns trigger language plpgsql as $$
begin
	new.policy := new.policy || jsonb_build_object('on_fault',
		wlb_items_merge(new.policy->>'on_fault', new.settings->>'on_fault'));
	return new;
end $$;

create trigger runs_settings_prevail before update of policy, settings on runs
	for each row when (new.settings ? 'on_fault') execute function wlb_settings_prevail();

-- The account that changed a run of which it is not the owner is an administrator's.
create function wlb_changer(r runs, p_by bigint) returns text language sql immutable as $$
	select case p_by when r.uid then r.user_name when 0 then 'root' else format('SlurmUser (uid %s)', p_by) end
$$;

-- Changes what p_on_fault names. p_uid: the owner that the run must have, null for an administrator; p_by: the account
-- that asks. p_defaults: all items, as wlbd.conf has them.
create function wlb_run_set(p_name text, p_uid bigint, p_by bigint, p_on_fault text, p_defaults text)
returns json language plpgsql as $$
declare
	r runs := wlb_run_actable(p_name, p_uid);
	before text;
	after text;
begin
	select * into r from runs where id = r.id for update;
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

-- The run as wlb_run_json has it, and what is done about its faults.
create function wlb_run_shown(p_name text, p_uid bigint, p_steps boolean, p_asker bigint, p_defaults text)
returns json language plpgsql stable as $$
declare
	story json := wlb_run_json(p_name, p_uid, p_steps, p_asker);
begin
	return (select json_object_agg(key, value) from (
		select key, value from json_each(story)
		union all select 'on_fault', to_json(wlb_items_merge(p_defaults, story->'policy'->>'on_fault'))) as fields);
end $$;

-- ---- faults and verdicts in one list --------------------------------------------------------------------------------

create index on verdicts (found_at, id);
create index on faults (detected_at, id);
create index on faults (attempt_id) where proof ? 'evicted'; -- wlbd ended the attempt because of it

create type wlb_listed_fault as (
	told_at timestamptz,
	id bigint,
	entry json
);

-- The verdict of a fault for which wlbd ended its attempt; null: it is not stored.
create function wlb_fault_verdict(f faults) returns bigint language sql stable as $$
	select max(v.id) from verdicts v
	where v.attempt_id = f.attempt_id and v.confirmed_at is not null
		and (f.rank is null or f.rank = any (v.ranks)) and (f.node is null or f.node = any (v.nodes))
$$;

-- A verdict that was to be reported when it was found may end its attempt later, after `wlb set`.
create function wlb_listed_fault_of(v verdicts, p_run text) returns wlb_listed_fault language sql stable as $$
	select row(v.found_at, v.id, json_build_object('run_id', p_run, 'source', 'verdict',
		'attempt', (select number from attempts where id = v.attempt_id), 'time', wlb_time(v.found_at), 'kind', v.kind,
		'state', v.state, 'ranks', v.ranks, 'rank_count', v.rank_count, 'nodes', v.nodes, 'collective', v.collective,
		'sequence', v.sequence, 'step', v.step, 'cost_percent', wlb_real(v.cost_percent),
		'certainty', wlb_real(v.certainty), 'evidence', v.evidence,
		'action', case when exists (select from faults f where f.attempt_id = v.attempt_id
			and f.proof ? 'evicted' and wlb_fault_verdict(f) = v.id) then 'evict' else v.action end,
		'began_at', wlb_time(v.began_at), 'confirmed_at', wlb_time(v.confirmed_at),
		'over_at', wlb_time(v.over_at)))::wlb_listed_fault
$$;

create function wlb_listed_fault_of(f faults, p_run text) returns wlb_listed_fault language sql stable as $$
	select row(f.detected_at, f.id, json_build_object('run_id', p_run, 'source', 'fault',
		'attempt', (select number from attempts where id = f.attempt_id), 'time', wlb_time(f.detected_at), 'kind', f.kind,
		'state', 'confirmed', 'ranks', array_remove(array[f.rank, f.peer_rank], null),
		'rank_count', num_nonnulls(f.rank, f.peer_rank), 'nodes', array_remove(array[f.node], null),
		'collective', f.collective, 'step', f.step, 'evidence', coalesce(nullif(f.detail, ''), wlb_fault_text(f)),
		'cause', f.cause))::wlb_listed_fault
$$;

-- The newest p_limit: of the run p_run in the order of time, or, where that is null, of all runs whose owner is p_uid
-- (null: of all), the newest first. p_node and p_since may be null. A fault for which wlbd ended its attempt is told as the verdict that it was.
create function wlb_faults_list(p_run text, p_uid bigint, p_asker bigint, p_node text, p_since timestamptz, p_limit bigint)
returns json language plpgsql stable set plan_cache_mode = force_custom_plan as $$
declare
	wanted bigint := case when p_run is not null then (wlb_run_readable(p_run, p_uid, p_asker)).id end;
begin
	return (with found as (
		select told.* from (select v, r.name from verdicts v join runs r on r.id = v.run_id
			where (wanted is null or r.id = wanted) and (p_uid is null or r.uid = p_uid)
				and (p_node is null or v.nodes @> array[p_node]) and (p_since is null or v.found_at >= p_since)
			order by v.found_at desc, v.id desc limit least(p_limit, 1000)) as newest,
			wlb_listed_fault_of(newest.v, newest.name) as told
		union all
		select told.* from (select f, r.name from faults f join runs r on r.id = f.run_id
			where (wanted is null or r.id = wanted) and (p_uid is null or r.uid = p_uid)
				and (p_node is null or f.node = p_node) and (p_since is null or f.detected_at >= p_since)
				and (not coalesce(f.proof ? 'evicted', false) or wlb_fault_verdict(f) is null)
			order by f.detected_at desc, f.id desc limit least(p_limit, 1000)) as newest,
			wlb_listed_fault_of(newest.f, newest.name) as told
	), listed as (
		select * from found order by told_at desc, id desc limit least(p_limit, 1000)
	)
	select json_build_object('faults', coalesce(json_agg(entry order by case when wanted is null then told_at end desc,
		case when wanted is null then id end desc, told_at, id), '[]')) from listed);
end $$;

-- ---- for SQL and Grafana ---------------------------------------------------------------------------------------------

create view run_verdicts as
select r.name as run, r.id as run_id, a.number as attempt, v.kind, v.state, v.ranks, v.rank_count, v.nodes, v.collective,
	v.sequence, v.step, v.cost_percent, v.certainty, v.evidence, v.action, v.began_at, v.found_at, v.confirmed_at,
	v.over_at, wlb_span(v.began_at, coalesce(v.over_at, now())) as lasted
from verdicts v join runs r on r.id = v.run_id join attempts a on a.id = v.attempt_id;
