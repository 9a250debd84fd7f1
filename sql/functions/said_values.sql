-- What trainers that record nothing themselves say of their steps. Sources come at their own time and may say the same, so a value is
-- stored by its origin, and what is told again changes nothing.

create function wlb_source_name(p_source smallint) returns text language sql immutable as $$
	select (array['log', 'tensorboard', 'stdout', 'hook'])[p_source + 1]
$$;

-- A number within bounds, else null; also for NaN.
create function wlb_within(x double precision, p_least double precision, p_most double precision)
returns double precision language sql immutable as $$
	select case when x >= p_least and x <= p_most then x end
$$;

-- Adds the names that the run has room for.
create function wlb_followed_names_add(a attempts, p_values jsonb) returns void language sql as $$
	insert into followed_names (run_id, name, attempt_id)
	select a.run_id, name, a.id from jsonb_object_keys(p_values) as said (name)
	where not exists (select from followed_names f where f.run_id = a.run_id and f.name = said.name)
	order by name limit (select greatest(256 - count(*), 0) from followed_names where run_id = a.run_id)
$$;

-- Stores the values of a record. Of two origins of a value follow/value_merge.h says which counts, and this is its order: the better
-- source, the stream with the smaller number, then what comes later in it. A value as JSON is a number, nan, inf or -inf.
create function wlb_followed_values_add(a attempts, d jsonb) returns void language plpgsql as $$
declare
	room bigint;
begin
	perform wlb_followed_names_add(a, d->'values');
	with said as (
		select key as name, (value #>> '{}')::float8 as value from jsonb_each(d->'values')
	), stored as (
		insert into followed_values as old (attempt_id, name, is_of_attempt, step, value, source, stream, generation, at)
		select a.id, said.name, coalesce((d->>'is_of_attempt')::boolean, false), (d->>'step')::bigint, said.value,
			array_position(array['log', 'tensorboard', 'stdout', 'hook'], d->>'source') - 1, (d->>'stream')::integer,
			(d->>'generation')::bigint, (d->>'at')::bigint
		from said join followed_names f on f.run_id = a.run_id and f.name = said.name and f.stored < 1000000
		on conflict (attempt_id, name, is_of_attempt, step) do update set value = excluded.value, source = excluded.source,
			stream = excluded.stream, generation = excluded.generation, at = excluded.at
		where (excluded.source, excluded.stream, -excluded.generation, -excluded.at)
			< (old.source, old.stream, -old.generation, -old.at)
		returning name, (xmax = 0) as is_new
	)
	update followed_names f set stored = f.stored + case when is_new then 1 else 0 end, attempt_id = greatest(f.attempt_id, a.id)
	from stored where f.run_id = a.run_id and f.name = stored.name;
	select count(*) into room from followed_names f
	where f.run_id = a.run_id and f.stored < 1000000 and d->'values' ? f.name;
	update runs set dropped_values = dropped_values + (select count(*) from jsonb_object_keys(d->'values')) - room
	where id = a.run_id and room < (select count(*) from jsonb_object_keys(d->'values'));
end $$;

-- The row of a step in `steps`, from its values. p_interval_s: from the step that was said before to this one, p_span steps.
create function wlb_followed_step(a attempts, p_step bigint, p_span bigint, p_interval_s double precision, p_time timestamptz)
returns steps language sql stable as $$
	with said as (
		select wlb_within(max(value) filter (where name = 'loss'), -1e100, 1e100) as loss,
			wlb_within(max(value) filter (where name = 'grad_norm'), 0, 1e100) as grad_norm,
			wlb_within(max(value) filter (where name = 'lr'), -1e100, 1e100) as lr,
			round(wlb_within(max(value) filter (where name = 'tokens'), 0, 1e12))::bigint as tokens,
			wlb_within(max(value) filter (where name = 'tokens_per_s'), 0, 1e15) as tokens_per_s,
			coalesce(wlb_within(max(value) filter (where name = 'step_time_s'), 0, 1e7),
				round(p_interval_s::numeric, 9)::float8 / p_span) as step_time_s
		from followed_values where attempt_id = a.id and not is_of_attempt and step = p_step
			and name in ('loss', 'grad_norm', 'lr', 'tokens', 'tokens_per_s', 'step_time_s')
	)
	select row(a.run_id, p_step, a.id, loss, grad_norm, lr, tokens, null, step_time_s,
		coalesce(tokens_per_s, wlb_rate(tokens, wlb_seconds(step_time_s))),
		null, null, null, null, p_time, p_span, null, null)::steps
	from said
$$;

-- From which step an attempt goes on that says only its steps: from the newest checkpoint before its first, where one is known.
create function wlb_followed_resumed(a attempts, p_step bigint) returns void language sql as $$
	update attempts set resumed_step = coalesce(
		(select max(step) from checkpoints where run_id = a.run_id and attempt_id <> a.id and step < p_step), greatest(p_step - 1, 0))
	where id = a.id and a.number > 1 and a.resumed_step is null and resumed_step is null and world_size is null
		and (select step from steps where run_id = a.run_id order by step limit 1) is not null
$$;

-- Stores a record of type followed. A step whose number is only that of the attempt is in no row of `steps`: neither repeated steps nor
-- the time that counts can be told by it. A record that does not say where training is (is_step) may complete the row of its step.
create function wlb_record_followed(a attempts, d jsonb, p_time timestamptz) returns wlb_added language plpgsql as $$
declare
	said_step bigint := (d->>'step')::bigint;
	is_step boolean := coalesce((d->>'is_step')::boolean, false);
begin
	update runs set is_followed = true where id = a.run_id and not is_followed;
	perform wlb_followed_values_add(a, d);
	if coalesce((d->>'is_of_attempt')::boolean, false) then
		update attempts set step_of_attempt = greatest(step_of_attempt, said_step) where id = a.id and is_step;
	elsif is_step or exists (select from steps where run_id = a.run_id and step = said_step and attempt_id = a.id) then
		perform wlb_followed_resumed(a, said_step);
		return wlb_step_store(a, wlb_followed_step(a, said_step, coalesce((d->>'span')::bigint, 1), (d->>'interval_s')::float8, p_time), true);
	end if;
	return (0, 0, 0, 0, false)::wlb_added;
end $$;

-- The newest value of each name, as a reply has it: NaN and the infinities are texts.
create function wlb_followed_json(p_run bigint) returns json language plpgsql stable as $$
begin
	return (select coalesce(json_agg(json_build_object('name', name, 'attempt', attempt, 'step', step, 'is_of_attempt', is_of_attempt,
		'value', case when wlb_real(value) is null then to_json(lower(replace(value::text, 'Infinity', 'inf'))) else to_json(value) end,
		'source', source) order by name), '[]')
	from run_values where run_id = p_run);
end $$;
