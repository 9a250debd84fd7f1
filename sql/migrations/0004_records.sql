-- Records within bounds, and reads that take as long for a run of 300,000 steps as for one of 300.
--
-- What was recorded before numbers had bounds may hold any value of its column's type, and one user's row must not make
-- a list fail for all: no view and no function below can fail on what the tables accept, and none returns a number that
-- a reader of JSON refuses.
--
-- Replaces: views run_attempts, run_summary; functions wlb_event_add, wlb_record_attempt, wlb_record_step (which
-- returns what it added), wlb_rank_map_json, wlb_steps_json, wlb_attempts_json, wlb_faults_json,
-- wlb_checkpoints_json, wlb_events_json, wlb_run_json, wlb_run_steps_json, wlb_runs_json.

-- ---- numbers that every reader takes ----------------------------------------------------------------------------

-- Null for NaN and the infinities, which JSON does not have.
create function wlb_real(x double precision) returns double precision language sql immutable as $$
	select case when x > '-Infinity' and x < 'Infinity' then x end
$$;

-- The nearest number that fits a bigint; null for NaN.
create function wlb_whole(x numeric) returns bigint language sql immutable as $$
	select case when x <> 'NaN' then greatest(least(x, 9223372036854775807), -9223372036854775808)::bigint end
$$;

-- Null where there is no time to divide by, and at most 1e15.
create function wlb_rate(amount numeric, seconds numeric) returns double precision language sql immutable as $$
	select case when amount >= 0 and seconds > 0 and amount < 'Infinity' and seconds < 'Infinity'
		then least(amount / seconds, 1e15)::float8 end
$$;

-- A duration as a number that sums without rounding, to the nanosecond: 0 where it is none.
create function wlb_seconds(x double precision) returns numeric language sql immutable as $$
	select case when x >= 0 and x <= 1e7 then round(x::numeric, 9) else 0 end
$$;

-- jsonb prints every digit of a number: 1e300 is an integer of 301 digits there, which readers refuse. Such numbers
-- become null. Nearly every value has no long sequence of digits and is returned unchanged.
create function wlb_plain(j jsonb) returns jsonb language plpgsql immutable as $$
begin
	if j::text !~ '[0-9]{18}' then
		return j;
	end if;
	return case jsonb_typeof(j)
		when 'object' then (select jsonb_object_agg(key, wlb_plain(value)) from jsonb_each(j))
		when 'array' then (select jsonb_agg(wlb_plain(value) order by place)
			from jsonb_array_elements(j) with ordinality as entries (value, place))
		when 'number' then case when abs((j #>> '{}')::numeric) <= 1e18 then j else 'null' end
		else j
	end;
end $$;

-- The same; null if its text is longer than `most_bytes`.
create function wlb_plain_within(j jsonb, most_bytes integer) returns jsonb language sql immutable as $$
	select case when octet_length(j::text) <= most_bytes then wlb_plain(j) end
$$;

-- One of a step's parts, for charts; null where it is no number that a double holds.
create function wlb_part(parts jsonb, name text) returns double precision language sql immutable as $$
	select case when jsonb_typeof(parts->name) = 'number' and abs((parts->>name)::numeric) <= 1e300
		then (parts->>name)::float8 end
$$;

-- Null where either end is missing or infinite, or lies outside the years that a difference can span.
create function wlb_span(began timestamptz, ended timestamptz) returns interval language sql immutable as $$
	select case when began > '0001-01-01' and ended > '0001-01-01' and began < '9999-12-31' and ended < '9999-12-31'
		then ended - began end
$$;

-- ---- tables ------------------------------------------------------------------------------------------------------

-- Sums over `steps`, updated by the transaction that stores a step.
alter table runs
	add column steps bigint not null default 0,
	add column first_step bigint,
	add column last_step bigint,
	add column first_loss double precision,
	add column last_loss double precision,
	add column tokens numeric not null default 0,
	add column step_seconds numeric not null default 0,  -- by wlb_seconds
	add column steps_repeated bigint not null default 0, -- rows of steps_superseded
	add column faults bigint not null default 0,
	-- Counts of removed records: a run that has more than the bound loses the oldest.
	add column dropped_events bigint not null default 0,
	add column dropped_faults bigint not null default 0,
	add column dropped_checkpoints bigint not null default 0,
	add column dropped_evidence bigint not null default 0;

update runs r set steps = done.steps, first_step = done.first_step, last_step = done.last_step, tokens = done.tokens,
	step_seconds = done.seconds,
	first_loss = (select loss from steps s where s.run_id = r.id order by step limit 1),
	last_loss = (select loss from steps s where s.run_id = r.id order by step desc limit 1)
from (
	select run_id, count(*) as steps, min(step) as first_step, max(step) as last_step,
		coalesce(sum(tokens), 0) as tokens, sum(wlb_seconds(step_time_s)) as seconds
	from steps group by run_id) as done
where done.run_id = r.id;

update runs r set steps_repeated = x.count
from (select run_id, count(*) from steps_superseded group by run_id) as x where x.run_id = r.id;

update runs r set faults = x.count
from (select run_id, count(*) from faults group by run_id) as x where x.run_id = r.id;

delete from events where id in (
	select id from (
		select id, row_number() over (partition by run_id, kind, recorded_at, md5(detail) order by id) as place
		from events) as told
	where place > 1);

-- An event that is reported twice is stored once.
create unique index events_once on events (run_id, kind, recorded_at, md5(detail));

-- For reads by attempt, and for the deletion of a run.
create index on events (attempt_id);
create index on faults (attempt_id);
create index on checkpoints (attempt_id);
create index on steps_superseded (attempt_id, step);
create index on runs (uid, id);

-- Several functions insert faults: a trigger updates the run's count for all of them.
create function wlb_faults_count() returns trigger language plpgsql as $$
begin
	update runs r set faults = r.faults + x.count * case when tg_op = 'INSERT' then 1 else -1 end
	from (select run_id, count(*) from changed group by run_id) as x where x.run_id = r.id;
	return null;
end $$;

create trigger faults_added after insert on faults referencing new table as changed
	for each statement execute function wlb_faults_count();
create trigger faults_removed after delete on faults referencing old table as changed
	for each statement execute function wlb_faults_count();

-- ---- records -----------------------------------------------------------------------------------------------------

create or replace function wlb_event_add(p_run bigint, p_attempt bigint, p_kind text, p_detail text, p_time timestamptz)
returns void language sql as $$
	insert into events (run_id, attempt_id, kind, detail, recorded_at)
	values (p_run, p_attempt, p_kind, p_detail, p_time)
	on conflict (run_id, kind, recorded_at, md5(detail)) do nothing
$$;

create or replace function wlb_record_attempt(a attempts, d jsonb, p_time timestamptz) returns void language plpgsql as $$
begin
	perform wlb_attempt_begun(a, p_time);
	update attempts set
		tp = (d->'layout'->>'tp')::integer, cp = (d->'layout'->>'cp')::integer,
		pp = (d->'layout'->>'pp')::integer, dp = (d->'layout'->>'dp')::integer,
		world_size = (d->>'world_size')::integer, dtype = d->>'dtype', device = d->>'device',
		resumed_step = (d->>'resumed_step')::bigint, checkpoint_path = d->>'checkpoint',
		nodes = (select array_agg(node order by first) from (
			select m->>'node' as node, min((m->>'rank')::integer) as first
			from jsonb_array_elements(d->'rank_map') m group by m->>'node') as used)
	where id = a.id;
	delete from rank_map where attempt_id = a.id and rank >= (d->>'world_size')::integer;
	insert into rank_map (attempt_id, rank, node, local_rank)
	select a.id, (m->>'rank')::integer, m->>'node', (m->>'local_rank')::integer
	from jsonb_array_elements(d->'rank_map') m
	on conflict (attempt_id, rank) do update set node = excluded.node, local_rank = excluded.local_rank;
	update runs set model = d->'model', seq_length_tokens = (d->>'seq_length')::bigint,
		global_batch_size = (d->>'global_batch_size')::bigint, train_iters = (d->>'train_iters')::bigint
	where id = a.run_id;
end $$;

-- The changes that a record, or a whole delivery, makes to its run.
create type wlb_added as (
	steps bigint,
	repeated bigint,
	tokens numeric,
	seconds numeric,
	trimmed boolean -- something else that has a bound was added
);

drop function wlb_record_step(attempts, jsonb, timestamptz);

-- The newest attempt's row of a step is the one in `steps`; every other is kept in steps_superseded.
create function wlb_record_step(a attempts, d jsonb, p_time timestamptz) returns wlb_added language plpgsql as $$
declare
	holder integer;
	old steps;
	new steps;
begin
	new := (a.run_id, (d->>'step')::bigint, a.id, (d->>'loss')::float8, (d->>'grad_norm')::float8, (d->>'lr')::float8,
		(d->>'tokens')::bigint, (d->>'documents')::bigint, (d->>'step_time_s')::float8, (d->>'tokens_per_s')::float8,
		(d->>'held_tokens')::bigint, (d->>'predicted_imbalance')::float8, (d->>'imbalance')::float8, d->'parts',
		p_time)::steps;
	select * into old from steps where run_id = a.run_id and step = new.step;
	if old.run_id is null then
		insert into steps select new.*;
		return (1, 0, coalesce(new.tokens, 0), wlb_seconds(new.step_time_s), false)::wlb_added;
	end if;
	select number into holder from attempts where id = old.attempt_id;
	if holder > a.number then
		insert into steps_superseded select new.*;
		return (0, 1, 0, 0, false)::wlb_added;
	end if;
	insert into steps_superseded select old.*;
	update steps set attempt_id = new.attempt_id, loss = new.loss, grad_norm = new.grad_norm,
		learning_rate = new.learning_rate, tokens = new.tokens, documents = new.documents,
		step_time_s = new.step_time_s, tokens_per_s = new.tokens_per_s, held_tokens = new.held_tokens,
		predicted_imbalance = new.predicted_imbalance, imbalance = new.imbalance, parts = new.parts,
		recorded_at = new.recorded_at
	where run_id = a.run_id and step = new.step;
	return (0, 1, coalesce(new.tokens, 0)::numeric - coalesce(old.tokens, 0),
		wlb_seconds(new.step_time_s) - wlb_seconds(old.step_time_s), false)::wlb_added;
end $$;


-- Removes the oldest records of each kind over its bound, and counts them. wlbd acts upon job_resized: it stays.
create function wlb_run_trim(p_run bigint) returns void language plpgsql as $$
declare
	events_gone bigint;
	faults_gone bigint;
	checkpoints_gone bigint;
	evidence_gone bigint;
begin
	delete from events where id in (
		select id from events where run_id = p_run and kind <> 'job_resized' order by id desc offset 10000);
	get diagnostics events_gone = row_count;
	delete from faults where id in (select id from faults where run_id = p_run order by id desc offset 10000);
	get diagnostics faults_gone = row_count;
	delete from checkpoints where id in (
		select id from checkpoints where run_id = p_run order by step desc, id desc offset 10000);
	get diagnostics checkpoints_gone = row_count;
	update faults set evidence = null where id in (
		select id from (
			select id, octet_length(evidence::text) as bytes,
				sum(octet_length(evidence::text)) over (order by id desc) as total
			from faults where run_id = p_run and evidence is not null) as told
		where bytes > 16384 or total > 4194304);
	get diagnostics evidence_gone = row_count;
	if events_gone + faults_gone + checkpoints_gone + evidence_gone > 0 then
		update runs set dropped_events = dropped_events + events_gone, dropped_faults = dropped_faults + faults_gone,
			dropped_checkpoints = dropped_checkpoints + checkpoints_gone,
			dropped_evidence = dropped_evidence + evidence_gone
		where id = p_run;
	end if;
end $$;

-- The first and the last step are looked up and not compared: the primary key gives them at once.
create function wlb_run_total(a attempts, added wlb_added) returns void language plpgsql as $$
declare
	first steps;
	last steps;
begin
	select * into first from steps where run_id = a.run_id order by step limit 1;
	select * into last from steps where run_id = a.run_id order by step desc limit 1;
	update runs set steps = steps + added.steps, steps_repeated = steps_repeated + added.repeated,
		tokens = tokens + added.tokens, step_seconds = step_seconds + added.seconds,
		first_step = first.step, first_loss = first.loss, last_step = last.step, last_loss = last.loss
	where id = a.run_id;
	if added.steps > 0 then
		update attempts set new_steps = new_steps + added.steps where id = a.id;
	end if;
end $$;

-- ---- views ------------------------------------------------------------------------------------------------------

create or replace view run_attempts as
select r.name as run, r.id as run_id, a.id as attempt_id, a.number as attempt, a.uuid, a.state, a.reason, a.nodes,
	cardinality(a.nodes) as node_count, a.spares, a.world_size, a.tp, a.cp, a.pp, a.dp, a.device, a.dtype,
	a.resumed_step, a.checkpoint_path, a.exit_code, a.new_steps,
	least((select min(step) from steps s where s.attempt_id = a.id),
		(select min(step) from steps_superseded s where s.attempt_id = a.id)) as first_step,
	greatest((select max(step) from steps s where s.attempt_id = a.id),
		(select max(step) from steps_superseded s where s.attempt_id = a.id)) as last_step,
	a.created_at, a.started_at, a.ended_at
from attempts a join runs r on r.id = a.run_id;

create or replace view run_summary as
select r.name as run, r.id as run_id, r.job_id, r.job_name, r.user_name, r.cluster, r.state, r.reason,
	r.submitted_at, r.started_at, r.ended_at,
	wlb_span(r.started_at, coalesce(r.ended_at, now())) as elapsed,
	last.number as attempts, last.nodes, cardinality(last.nodes) as node_count, last.world_size,
	last.tp, last.cp, last.pp, last.dp,
	r.steps, r.train_iters, r.last_step, r.tokens, wlb_rate(r.tokens, r.step_seconds) as tokens_per_s,
	r.first_loss, r.last_loss, r.steps_repeated, r.faults
from runs r
left join lateral (select * from attempts a where a.run_id = r.id order by number desc limit 1) last on true;

-- ---- the API's JSON ---------------------------------------------------------------------------------------------

-- A reply has bounds: 65,536 ranks, 10,000 steps, 1,000 of each other list and 1,000,000 names of nodes. The newest are
-- kept, and what is left out is counted.

create or replace function wlb_rank_map_json(p_attempt bigint) returns json language sql stable as $$
	select coalesce(json_agg(json_build_object('rank', rank, 'node', node, 'local_rank', local_rank) order by rank), '[]')
	from (select * from rank_map where attempt_id = p_attempt order by rank limit 65536) as ranks
$$;

create function wlb_step_json(s run_steps) returns json language sql stable as $$
	select json_build_object('step', s.step, 'attempt', s.attempt, 'loss', wlb_real(s.loss),
		'grad_norm', wlb_real(s.grad_norm), 'lr', wlb_real(s.learning_rate), 'tokens', s.tokens,
		'documents', s.documents, 'step_time_s', wlb_real(s.step_time_s), 'tokens_per_s', wlb_real(s.tokens_per_s),
		'held_tokens', s.held_tokens, 'predicted_imbalance', wlb_real(s.predicted_imbalance),
		'imbalance', wlb_real(s.imbalance), 'parts', wlb_plain_within(s.parts, 16384),
		'time', wlb_real(extract(epoch from s.recorded_at)::float8))
$$;

drop function wlb_steps_json(bigint, bigint, bigint);

-- A page: the steps from p_from on; `next` is the first step of the next page, null after the last page.
create function wlb_steps_page(p_run bigint, p_from bigint, p_limit bigint) returns json language sql stable as $$
	with page as (
		select * from run_steps where run_id = p_run and step >= p_from order by step limit least(p_limit, 10000)
	), last as (
		select max(step) as step from page
	)
	select json_build_object(
		'steps', coalesce((select json_agg(wlb_step_json(page::run_steps) order by step) from page), '[]'),
		'next', (select min(s.step) from steps s, last where s.run_id = p_run and s.step > last.step))
$$;

-- About p_points steps, evenly spaced from the first to the last, each found by the primary key: as fast for a long run
-- as for a short one. Several points may select the same step where steps are missing.
create function wlb_steps_sample(p_run bigint, p_points bigint) returns json language sql stable as $$
	with ends as (
		select min(step) as first, max(step) as last from steps where run_id = p_run
	), points as (
		select first + (last::numeric - first) * n / greatest(p_points - 1, 1) as at
		from ends, generate_series(0, p_points - 1) as n
	), found as (
		select distinct s.step from points
		cross join lateral (select step from steps
			where run_id = p_run and step >= wlb_whole(floor(points.at)) order by step limit 1) as s
	)
	select json_build_object('steps', coalesce(json_agg(wlb_step_json(s) order by s.step), '[]'), 'next', null)
	from found join run_steps s on s.run_id = p_run and s.step = found.step
$$;

-- The newest 10,000 steps.
create function wlb_steps_newest(p_run bigint) returns json language sql stable as $$
	select coalesce(json_agg(wlb_step_json(page::run_steps) order by step), '[]')
	from (select * from run_steps where run_id = p_run order by step desc limit 10000) as page
$$;

-- `rank_map` is null for an attempt whose ranks, with those of the attempts after it, are over the bound.
create or replace function wlb_attempts_json(p_run bigint) returns json language sql stable as $$
	with newest as (
		select *, sum(cardinality(nodes)) over later as names, sum(greatest(world_size::numeric, 1)) over later as ranks
		from (select * from run_attempts where run_id = p_run order by attempt desc limit 1000) as kept
		window later as (order by attempt desc)
	)
	select coalesce(json_agg(json_build_object('attempt', attempt, 'attempt_id', uuid, 'state', state, 'reason', reason,
		'nodes', case when names <= 1000000 then nodes else '{}' end, 'node_count', node_count, 'spares', spares,
		'layout', wlb_layout_json(tp, cp, pp, dp),
		'rank_map', case when ranks <= 65536 then wlb_rank_map_json(attempt_id) end,
		'world_size', world_size, 'device', device, 'dtype', dtype,
		'created_at', wlb_time(created_at), 'started_at', wlb_time(started_at), 'ended_at', wlb_time(ended_at),
		'first_step', first_step, 'last_step', last_step, 'resumed_step', resumed_step,
		'checkpoint', checkpoint_path, 'exit_code', exit_code) order by attempt), '[]')
	from newest
$$;

create or replace function wlb_faults_json(p_run bigint) returns json language sql stable as $$
	select coalesce(json_agg(json_build_object('attempt', a.number, 'time', wlb_time(detected_at), 'kind', kind,
		'rank', rank, 'node', node, 'peer_rank', peer_rank, 'collective', collective, 'step', step,
		'cost_s', wlb_real(cost_s), 'detail', detail, 'cause', cause) order by a.number, not cause, detected_at), '[]')
	from (select * from faults where run_id = p_run order by id desc limit 1000) as f
	join attempts a on a.id = f.attempt_id
$$;

create or replace function wlb_checkpoints_json(p_run bigint) returns json language sql stable as $$
	select coalesce(json_agg(json_build_object('attempt', a.number, 'step', step, 'path', path, 'bytes', size_bytes,
		'duration_s', wlb_real(duration_s), 'time', wlb_time(recorded_at)) order by recorded_at, step), '[]')
	from (select * from checkpoints where run_id = p_run order by step desc, id desc limit 1000) as c
	join attempts a on a.id = c.attempt_id
$$;

create or replace function wlb_events_json(p_run bigint) returns json language sql stable as $$
	select coalesce(json_agg(json_build_object('attempt', a.number, 'time', wlb_time(recorded_at), 'kind', kind,
		'detail', detail) order by recorded_at, e.id), '[]')
	from (select * from events where run_id = p_run order by id desc limit 1000) as e
	left join attempts a on a.id = e.attempt_id
$$;

-- How many stored entries of each list a reply omits.
create function wlb_left_out_json(r runs) returns json language sql stable as $$
	select json_build_object(
		'attempts', greatest((select count(*) from attempts where run_id = r.id) - 1000, 0),
		'faults', greatest((select count(*) from faults where run_id = r.id) - 1000, 0),
		'checkpoints', greatest((select count(*) from checkpoints where run_id = r.id) - 1000, 0),
		'events', greatest((select count(*) from events where run_id = r.id) - 1000, 0))
$$;

drop function wlb_run_json(text, bigint, boolean);

-- Not jsonb, which would print a loss of 1e100 as an integer of 101 digits.
create function wlb_run_json(p_name text, p_uid bigint, p_steps boolean, p_asker bigint default null)
returns json language plpgsql stable as $$
declare
	r runs := wlb_run_readable(p_name, p_uid, p_asker);
	last attempts;
	story json;
begin
	select * into last from attempts where run_id = r.id order by number desc limit 1;
	story := json_build_object('run_id', r.name, 'id', r.id, 'job_id', r.job_id, 'job_name', r.job_name,
		'user', r.user_name, 'cluster', r.cluster, 'state', r.state, 'reason', r.reason,
		'restart_count', r.restart_count, 'submitted_at', wlb_time(r.submitted_at),
		'started_at', wlb_time(r.started_at), 'ended_at', wlb_time(r.ended_at),
		'policy', wlb_plain_within(r.policy, 65536), 'model', wlb_plain_within(r.model, 65536),
		'seq_length', r.seq_length_tokens, 'global_batch_size', r.global_batch_size, 'train_iters', r.train_iters,
		'nodes', coalesce(last.nodes, '{}'), 'layout', wlb_layout_json(last.tp, last.cp, last.pp, last.dp),
		'rank_map', wlb_rank_map_json(last.id),
		'steps_done', r.steps, 'first_step', r.first_step, 'last_step', r.last_step,
		'first_loss', wlb_real(r.first_loss), 'last_loss', wlb_real(r.last_loss), 'steps_repeated', r.steps_repeated,
		'tokens', wlb_whole(r.tokens), 'attempts', wlb_attempts_json(r.id), 'faults', wlb_faults_json(r.id),
		'checkpoints', wlb_checkpoints_json(r.id), 'events', wlb_events_json(r.id),
		'left_out', wlb_left_out_json(r),
		'dropped', json_build_object('events', r.dropped_events, 'faults', r.dropped_faults,
			'checkpoints', r.dropped_checkpoints, 'evidence', r.dropped_evidence));
	if p_steps then
		select json_object_agg(key, value) into story from (
			select key, value from json_each(story)
			union all select 'steps', wlb_steps_newest(r.id)) as fields;
	end if;
	return story;
end $$;

drop function wlb_run_steps_json(text, bigint, bigint, bigint);

-- p_points is null for a page, else for a sample.
create function wlb_run_steps_json(p_name text, p_uid bigint, p_from bigint, p_limit bigint, p_points bigint,
	p_asker bigint default null)
returns json language plpgsql stable as $$
declare
	r runs := wlb_run_readable(p_name, p_uid, p_asker);
begin
	if p_points is not null then
		return wlb_steps_sample(r.id, p_points);
	end if;
	return wlb_steps_page(r.id, p_from, p_limit);
end $$;

-- Planned for the values given: a generic plan would read every run when only the user's are requested.
create or replace function wlb_runs_json(p_uid bigint, p_user text, p_state text, p_limit bigint)
returns json language plpgsql stable set plan_cache_mode = force_custom_plan as $$
begin
	return (with page as (
		select id from runs where (p_uid is null or uid = p_uid) and (p_user is null or user_name = p_user)
			and (p_state is null or state = p_state) order by id desc limit least(p_limit, 10000)
	), listed as (
		select s.*, sum(node_count) over (order by s.run_id desc) as names
		from page join run_summary s on s.run_id = page.id
	)
	select json_build_object('runs', coalesce(json_agg(json_build_object('run_id', s.run, 'id', s.run_id,
		'job_id', s.job_id, 'job_name', s.job_name, 'user', s.user_name, 'state', s.state, 'reason', s.reason,
		'submitted_at', wlb_time(s.submitted_at), 'started_at', wlb_time(s.started_at), 'ended_at', wlb_time(s.ended_at),
		'attempts', coalesce(s.attempts, 0),
		'nodes', case when s.names <= 1000000 then coalesce(s.nodes, '{}') else '{}' end,
		'node_count', coalesce(s.node_count, 0), 'world_size', s.world_size,
		'layout', wlb_layout_json(s.tp, s.cp, s.pp, s.dp), 'steps_done', s.steps, 'last_step', s.last_step,
		'train_iters', s.train_iters, 'last_loss', wlb_real(s.last_loss), 'tokens_per_s', s.tokens_per_s,
		'faults', s.faults) order by s.run_id desc), '[]'))
	from listed s);
end $$;
