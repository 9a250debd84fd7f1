-- The JSON that the API returns of runs. A reply has bounds: 65,536 ranks, 10,000 steps, 1,000 of each other list and 1,000,000 names of
-- nodes; in bytes, 16 MiB of names of nodes and as much of rank maps, 8 MiB of steps, 24 MiB of a list of runs. The newest are kept, and
-- what is left out is counted.
-- Functions that read tables are in PL/pgSQL, which keeps their plans: PostgreSQL plans those in SQL anew in each statement, for longer than
-- they run, where it cannot make them part of it. An entry whose bytes are counted is materialized: else it is made again for each use.

create function wlb_layout_json(tp integer, cp integer, pp integer, dp integer)
returns json language sql immutable as $$
	select case when tp is not null then json_build_object('tp', tp, 'cp', cp, 'pp', pp, 'dp', dp) end
$$;

-- As text, which takes half of the time of making an object of each rank: the maps of 16 attempts may have 65,536.
create function wlb_rank_map_json(p_attempt bigint) returns json language plpgsql stable as $$
begin
	return (select '[' || coalesce(string_agg('{"rank":' || rank || ',"node":' || to_json(node) || ',"local_rank":' || local_rank
		|| coalesce(',"device":' || device, '') || '}', ',' order by rank), '') || ']'
	from (select * from rank_map where attempt_id = p_attempt order by rank limit 65536) as ranks)::json;
end $$;

-- Returns the median step time over the newest 100 steps of the attempt. Its first step, in which memory is touched for
-- the first time, counts only where it is the only one.
create function wlb_attempt_step_s(p_attempt bigint) returns double precision language plpgsql stable as $$
begin
	return (select wlb_real(percentile_cont(0.5) within group (order by step_time_s))
	from (select step_time_s, step from steps where attempt_id = p_attempt and step_time_s is not null
		order by step desc limit 100) as newest
	where step > (select min(step) from steps where attempt_id = p_attempt)
		or (select count(*) from (select from steps where attempt_id = p_attempt order by step limit 2) as first) = 1);
end $$;

-- Returns the share of its devices' peak that the attempt computes at: what its plan predicts, at the step time that was measured. Null for
-- an attempt without a plan.
create function wlb_attempt_mfu(p_attempt bigint, p_plan jsonb) returns double precision language plpgsql stable as $$
begin
	if not coalesce(p_plan ? 'utilization', false) then
		return null;
	end if;
	return wlb_rate(wlb_part(p_plan, 'utilization')::numeric * wlb_part(p_plan, 'step_s')::numeric,
		wlb_attempt_step_s(p_attempt)::numeric);
end $$;

-- Only the newest 16 attempts are returned with their places of ranks, plans, GPUs and outputs. p_is_private: the asker may read commands
-- and errors.
create function wlb_attempts_json(p_run bigint, p_is_private boolean) returns json language plpgsql stable as $$
begin
	return (with newest as (
		select *, sum(node_count) over later as names, sum(nodes_bytes) over later as names_bytes,
			sum(greatest(world_size::numeric, 1)) over later as ranks, row_number() over later as place
		from (select * from run_attempts where run_id = p_run order by attempt desc limit 1000) as kept
		window later as (order by attempt desc)
	), mapped as materialized (
		select newest.*, o.attempt_id is not null as has_outputs, case when place <= 16 and ranks <= 65536 then wlb_rank_map_json(newest.attempt_id) end as map
		from newest left join attempt_outputs o on p_is_private and o.attempt_id = newest.attempt_id
	), sized as (
		select *, sum(octet_length(map::text)) over (order by attempt desc) as map_bytes from mapped
	)
	select coalesce(json_agg(json_build_object('attempt', attempt, 'attempt_id', uuid, 'state', state, 'reason', reason,
		'nodes', case when names <= 1000000 and names_bytes <= 16 << 20 then nodes else '{}' end,
		'node_count', node_count, 'spares', spares, 'layout', wlb_layout_json(tp, cp, pp, dp),
		'rank_map', case when map_bytes <= 16 << 20 then map end,
		'world_size', world_size, 'device', device, 'dtype', dtype,
		'created_at', wlb_time(created_at), 'started_at', wlb_time(started_at), 'ended_at', wlb_time(ended_at),
		'first_step', first_step, 'last_step', last_step, 'resumed_step', resumed_step, 'step_of_attempt', step_of_attempt,
		'saves_on_request', saves_on_request,
		'checkpoint', checkpoint_path, 'exit_code', exit_code,
		'plan', case when place <= 16 then wlb_plain_within(plan, 32768) end, 'memory_bytes', memory_bytes,
		'gpus', case when place <= 16 then wlb_plain_within(gpus, 16384) end,
		'output', case when has_outputs and place <= 16 then wlb_attempt_output_json(attempt_id) end,
		'error', case when has_outputs then wlb_attempt_error_json(attempt_id) end,
		'step_s', case when place <= 16 then wlb_attempt_step_s(attempt_id) end,
		'mfu', case when place <= 16 then wlb_attempt_mfu(attempt_id, plan) end) order by attempt), '[]')
	from sized);
end $$;

create function wlb_faults_json(p_run bigint) returns json language plpgsql stable as $$
begin
	return (select coalesce(json_agg(json_build_object('attempt', a.number, 'time', wlb_time(detected_at), 'kind', kind,
		'rank', rank, 'node', node, 'peer_rank', peer_rank, 'collective', collective, 'step', step,
		'cost_s', wlb_real(cost_s), 'detail', detail, 'cause', cause) order by a.number, not cause, detected_at), '[]')
	from (select * from faults where run_id = p_run order by id desc limit 1000) as f
	join attempts a on a.id = f.attempt_id);
end $$;

-- Checkpoints that trainers reported, and saves that only the hook has seen (reported_id is null). A save at the path of a checkpoint or
-- below it, in the attempt's time since the checkpoint before, is a part of it: of a checkpoint that was reported without a time, the
-- times of its parts are the time.
create function wlb_saves_listed(p_run bigint) returns table (attempt_id bigint, step bigint, path text, size_bytes bigint,
	duration_s float8, stall_s float8, recorded_at timestamptz, is_seen boolean)
language sql stable as $$
	with reported as (
		select c.*, lag(recorded_at) over (partition by attempt_id order by recorded_at, id) as before
		from (select * from checkpoints where run_id = p_run order by step desc, id desc limit 1000) as c
	), seen as (
		select s.attempt_id, s.recorded_at, s.save, (s.save->>'duration_s')::float8 as took_s,
			coalesce((s.save->>'stall_s')::float8, (s.save->>'duration_s')::float8) as stall_s, t.id as reported_id
		from (select * from events where run_id = p_run and save is not null order by id desc limit 1000) as s
		left join reported t on t.attempt_id = s.attempt_id and s.recorded_at <= t.recorded_at
			and (t.before is null or s.recorded_at > t.before)
			and (s.save->>'path' = t.path or starts_with(s.save->>'path', t.path || '/'))
	)
	select t.attempt_id, t.step, t.path, t.size_bytes, coalesce(t.duration_s, p.took_s),
		case when t.duration_s is null and t.stall_s is null then p.stall_s else t.stall_s end, t.recorded_at, false
	from reported t left join (select reported_id, sum(took_s) as took_s, sum(stall_s) as stall_s from seen group by reported_id) as p
		on p.reported_id = t.id
	union all
	select attempt_id, (save->>'step')::bigint, save->>'path', (save->>'bytes')::bigint, took_s, stall_s, recorded_at, true
	from seen where reported_id is null
$$;

create function wlb_checkpoints_json(p_run bigint) returns json language plpgsql stable as $$
begin
	return (select coalesce(json_agg(json_build_object('attempt', a.number, 'step', step, 'path', path, 'bytes', size_bytes,
		'duration_s', wlb_real(duration_s), 'stall_s', wlb_real(stall_s), 'time', wlb_time(recorded_at), 'is_seen', is_seen)
		order by recorded_at, step), '[]')
	from wlb_saves_listed(p_run) as c join attempts a on a.id = c.attempt_id);
end $$;

create function wlb_evaluations_json(p_run bigint) returns json language plpgsql stable as $$
begin
	return (select coalesce(json_agg(json_build_object('attempt', a.number, 'step', step, 'loss', wlb_real(loss), 'tokens', tokens,
		'duration_s', wlb_real(duration_s), 'time', wlb_time(recorded_at)) order by step), '[]')
	from (select * from evaluations where run_id = p_run order by step desc limit 1000) as e join attempts a on a.id = e.attempt_id);
end $$;

create function wlb_events_json(p_run bigint) returns json language plpgsql stable as $$
begin
	return (select coalesce(json_agg(json_build_object('attempt', a.number, 'time', wlb_time(recorded_at), 'kind', kind,
		'detail', detail) order by recorded_at, e.id), '[]')
	from (select * from events where run_id = p_run order by id desc limit 1000) as e
	left join attempts a on a.id = e.attempt_id);
end $$;

-- How many rows of each list a reply does not have.
create function wlb_left_out_json(r runs) returns json language plpgsql stable as $$
begin
	return (select json_build_object(
		'attempts', greatest((select count(*) from attempts where run_id = r.id) - 1000, 0),
		'faults', greatest((select count(*) from faults where run_id = r.id) - 1000, 0),
		'checkpoints', greatest((select count(*) from checkpoints where run_id = r.id) - 1000, 0),
		'evaluations', greatest((select count(*) from evaluations where run_id = r.id) - 1000, 0),
		'events', greatest((select count(*) from events where run_id = r.id) - 1000, 0),
		'verdicts', greatest((select count(*) from verdicts where run_id = r.id) - 200, 0)));
end $$;

create function wlb_step_json(s steps, p_attempt integer, p_tokens_so_far double precision default null)
returns json language sql stable as $$
	select json_build_object('step', s.step, 'attempt', p_attempt, 'loss', wlb_real(s.loss),
		'grad_norm', wlb_real(s.grad_norm), 'lr', wlb_real(s.learning_rate), 'tokens', s.tokens,
		'tokens_so_far', p_tokens_so_far,
		'documents', s.documents, 'step_time_s', wlb_real(s.step_time_s), 'tokens_per_s', wlb_real(s.tokens_per_s),
		'loss_tokens', s.loss_tokens, 'global_batch_size', s.global_batch_size,
		'held_tokens', s.held_tokens, 'predicted_imbalance', wlb_real(s.predicted_imbalance),
		'imbalance', wlb_real(s.imbalance), 'parts', wlb_plain_within(s.parts, 16384),
		'time', wlb_real(extract(epoch from s.recorded_at)::float8))
$$;

-- The newest 10,000 steps.
create function wlb_steps_newest(p_run bigint) returns json language plpgsql stable as $$
begin
	return (with page as materialized (
		select s.step, wlb_step_json(s::steps, a.number) as entry
		from (select * from steps where run_id = p_run order by step desc limit 10000) as s join attempts a on a.id = s.attempt_id
	), sized as (
		select step, entry, sum(octet_length(entry::text)) over (order by step desc) as bytes from page
	)
	select coalesce(json_agg(entry order by step), '[]') from sized where bytes <= 8 << 20);
end $$;

-- The first p_limit of the steps from p_from on. p_every above 1: of each that many steps, counted from 0, the first, which is found by the
-- primary key.
create function wlb_steps_from(p_run bigint, p_from bigint, p_limit bigint, p_every bigint)
returns setof steps language plpgsql stable rows 1000 as $$
begin
	if p_every = 1 then
		return query select * from steps where run_id = p_run and step >= p_from order by step limit p_limit;
		return;
	end if;
	return query with ends as (
		select min(step) as first, max(step) as last from steps where run_id = p_run and step >= p_from
	), windows as (
		select begins from ends, generate_series(0, p_limit - 1) as n,
			lateral (select first - first % p_every + n::numeric * p_every as begins) as at
		where begins <= last
	)
	select s.* from windows
	cross join lateral (select * from steps
		where run_id = p_run and step between greatest(wlb_whole(begins), p_from) and wlb_whole(begins + p_every - 1)
		order by step limit 1) as s
	order by s.step;
end $$;

-- A page: the steps from p_from on, as wlb_steps_from has them; `next` is the first step of the next page, null after the last page. A
-- page has a step at least.
create function wlb_steps_page(p_run bigint, p_from bigint, p_limit bigint, p_every bigint)
returns json language plpgsql stable as $$
begin
	return (with page as materialized (
		select s.step, wlb_step_json(s::steps, a.number) as entry
		from wlb_steps_from(p_run, p_from, least(p_limit, 10000), p_every) as s join attempts a on a.id = s.attempt_id
	), sized as (
		select step, entry, sum(octet_length(entry::text)) over (order by step) - octet_length(entry::text) as before from page
	), kept as (
		select step, entry from sized where before < 8 << 20
	)
	select json_build_object(
		'steps', coalesce((select json_agg(entry order by step) from kept), '[]'),
		'next', (select min(s.step) from steps s
			where s.run_id = p_run and s.step > (select wlb_whole(max(step) - max(step) % p_every + p_every::numeric - 1) from kept))));
end $$;

-- About p_points steps, evenly spaced from the first to the last, each found by the primary key: as fast for a long run
-- as for a short one. Several points may select the same step where steps are missing. It reads tables for whoever may read views.
create function wlb_sampled_steps(p_run bigint, p_points bigint) returns setof steps language plpgsql stable rows 1000
security definer set search_path = wlb_code, public, pg_temp as $$
begin
	perform wlb_reads_views();
	return query with ends as (
		select min(step) as first, max(step) as last from steps where run_id = p_run
	), points as (
		select first + (last::numeric - first) * n / greatest(p_points - 1, 1) as at
		from ends, generate_series(0, p_points - 1) as n
	)
	select distinct on (s.step) s.* from points
	cross join lateral (select * from steps
		where run_id = p_run and step >= wlb_whole(floor(points.at)) order by step limit 1) as s
	order by s.step;
end $$;

-- The same, each with the tokens of all steps of the run up to it; null where no step says how many it has. They are exact where every step
-- is sampled. Of a longer run, steps between two samples count as the mean of both, and all are scaled so that the last has the run's sum: as
-- exact as that wherever the tokens of a step are constant or change evenly, as in a ramp of the batch size.
create function wlb_sampled_tokens(p_run bigint, p_points bigint) returns table (entry steps, tokens_so_far double precision)
language plpgsql stable rows 1000 as $$
declare
	r runs;
begin
	select * into r from runs where id = p_run;
	return query with sampled as (
		select s as entry, s.step, coalesce(s.tokens, 0)::numeric as own, s.step::numeric - s.span_steps - lag(s.step) over by_step as between,
			lag(coalesce(s.tokens, 0)::numeric) over by_step as former, count(*) over () = r.steps as is_whole
		from wlb_sampled_steps(p_run, p_points) as s window by_step as (order by s.step)
	), summed as (
		select s.entry, sum(wlb_step_tokens(s.entry) + case when s.is_whole then 0
			else coalesce(greatest(s.between, 0) * (s.own + s.former) / 2, 0) end) over (order by s.step) as so_far
		from sampled as s
	)
	select s.entry, (s.so_far * r.tokens / nullif(max(s.so_far) over (), 0))::float8 from summed as s;
end $$;

create function wlb_steps_sample(p_run bigint, p_points bigint) returns json language plpgsql stable as $$
begin
	return (select json_build_object('steps', coalesce(json_agg(wlb_step_json(s.entry, a.number, s.tokens_so_far) order by (s.entry).step), '[]'),
		'next', null)
	from wlb_sampled_tokens(p_run, p_points) as s join attempts a on a.id = (s.entry).attempt_id);
end $$;

-- p_points is null for a page, else for a sample.
create function wlb_run_steps_json(p_name text, p_uid bigint, p_from bigint, p_limit bigint, p_points bigint,
	p_asker bigint default null, p_every bigint default 1)
returns json language plpgsql stable as $$
declare
	r runs := wlb_run_readable(p_name, p_uid, p_asker);
begin
	if p_points is not null then
		return wlb_steps_sample(r.id, p_points);
	end if;
	return wlb_steps_page(r.id, p_from, p_limit, p_every);
end $$;

-- Steps of the newest 16 attempts that were reported and are not recorded, where rank 0 records steps: its records are not delivered
-- yet, or it ended before it had written them.
create function wlb_steps_missing(p_run bigint)
returns table (attempt integer, first_step bigint, last_step bigint, node text) language sql stable rows 1 as $$
	select a.number, recorded.step + 1, a.reported_step, (select m.node from rank_map m where m.attempt_id = a.id and m.rank = 0)
	from (select * from attempts where run_id = p_run and world_size is not null order by number desc limit 16) as a
	cross join lateral (select greatest(coalesce(a.resumed_step, 0),
		(select max(step) from steps where attempt_id = a.id),
		(select max(step) from steps_superseded where attempt_id = a.id)) as step) as recorded
	where a.reported_step > recorded.step
$$;

create function wlb_steps_missing_json(p_run bigint) returns json language plpgsql stable as $$
begin
	return (select coalesce(json_agg(json_build_object('attempt', attempt, 'first_step', first_step, 'last_step', last_step, 'node', node)
		order by attempt), '[]') from wlb_steps_missing(p_run));
end $$;

-- p_is_admin: the asker is SlurmUser or root. Not jsonb, which would print a loss of 1e100 as an integer of 101 digits.
create function wlb_run_json(p_name text, p_uid bigint, p_steps boolean, p_asker bigint default null,
	p_is_admin boolean default false)
returns json language plpgsql stable as $$
declare
	r runs := wlb_run_readable(p_name, p_uid, p_asker);
	last attempts;
	story json;
begin
	select * into last from attempts where run_id = r.id order by number desc limit 1;
	story := json_build_object('run_id', r.name, 'alias', r.alias, 'id', r.id, 'job_id', r.job_id, 'job_name', r.job_name,
		'user', r.user_name, 'account', r.account, 'gpu_count', r.gpu_count, 'cluster', r.cluster, 'state', r.state, 'reason', r.reason,
		'restart_count', r.restart_count, 'submitted_at', wlb_time(r.submitted_at),
		'started_at', wlb_time(r.started_at), 'ended_at', wlb_time(r.ended_at),
		'policy', wlb_plain_within(r.policy, 65536), 'model', wlb_plain_within(r.model, 65536),
		'seq_length', r.seq_length_tokens, 'global_batch_size', r.global_batch_size, 'train_iters', r.train_iters,
		'nodes', coalesce(last.nodes, '{}'), 'layout', wlb_layout_json(last.tp, last.cp, last.pp, last.dp),
		'rank_map', wlb_rank_map_json(last.id),
		'steps_done', r.steps, 'first_step', r.first_step, 'last_step', r.last_step,
		'first_loss', wlb_real(r.first_loss), 'last_loss', wlb_real(r.last_loss), 'steps_repeated', r.steps_repeated,
		'steps_missing', wlb_steps_missing_json(r.id),
		'tokens', wlb_whole(r.tokens), 'tokens_per_s', wlb_rate(r.tokens, r.step_seconds),
		'attempts', wlb_attempts_json(r.id, p_is_admin or coalesce(r.uid = p_asker, false)),
		'faults', wlb_faults_json(r.id),
		'verdicts', wlb_verdicts_json(r.id),
		'checkpoints', wlb_checkpoints_json(r.id), 'evaluations', wlb_evaluations_json(r.id), 'events', wlb_events_json(r.id),
		'tags', wlb_tags_json(r.id), 'notes', wlb_notes_json(r.id),
		'values', wlb_followed_json(r.id), 'left_out', wlb_left_out_json(r),
		'dropped', json_build_object('events', r.dropped_events, 'faults', r.dropped_faults,
			'checkpoints', r.dropped_checkpoints, 'evidence', r.dropped_evidence,
			'verdicts', r.dropped_verdicts, 'values', r.dropped_values));
	return case when p_steps then wlb_json_with(story, json_build_object('steps', wlb_steps_newest(r.id))) else story end;
end $$;

-- The run as wlb_run_json has it, what is done about its faults, the time that it lost, and how often it should save.
create function wlb_run_shown(p_name text, p_uid bigint, p_steps boolean, p_asker bigint, p_defaults text, p_is_admin boolean)
returns json language plpgsql stable as $$
declare
	r runs := wlb_run_readable(p_name, p_uid, p_asker);
begin
	return wlb_json_with(wlb_run_json(p_name, p_uid, p_steps, p_asker, p_is_admin), json_build_object(
		'on_fault', to_json(wlb_items_merge(p_defaults, r.policy->>'on_fault')), 'time_lost', wlb_time_lost_json(r.id),
		'save_interval', wlb_save_interval_json(r.id)));
end $$;

-- Seconds from a run's start to its end, or now; null where it has not started.
create function wlb_run_elapsed_s(p_started timestamptz, p_ended timestamptz) returns double precision language sql stable as $$
	select round(extract(epoch from wlb_span(p_started, coalesce(p_ended, now()))), 3)::float8
$$;

-- Whether a run's model is called so: a part of its type, or of the path of its configuration, in any case of letters.
create function wlb_model_is_called(p_model jsonb, p_policy jsonb, p_text text) returns boolean language sql immutable as $$
	select strpos(lower(concat_ws(' ', p_model->>'model_type', p_policy->>'model')), lower(p_text)) > 0
$$;

-- Raises WL400 unless p_key is null or one by which wlb_runs_json puts runs in order.
create function wlb_runs_check_key(p_key text) returns void language plpgsql immutable as $$
declare
	keys text[] := '{run,name,user,account,state,submitted,started,ended,elapsed,step,loss,tokens,tokens_per_s,faults,attempts,nodes,memory,mfu}';
begin
	if p_key <> all (keys) then
		raise exception using errcode = 'WL400', message = format('parameter ''sort'': ''%s'' must be one of %s; with - before it the largest '
			'is first', left(p_key, 60), array_to_string(keys, ', '));
	end if;
end $$;

-- The runs of a list, in their order. A filter that is null lets every run pass. p_since: only runs that were not over before it. p_node:
-- one that an attempt had. p_text: a part of the job's name. p_order: a key of wlb_runs_check_key, the smallest first, after '-' the
-- largest first, and runs that have no value last; null: the newest first.
-- Planned for the values given: a generic plan would read every run when only the user's are requested.
create function wlb_runs_chosen(p_uid bigint, p_user text, p_state text, p_limit bigint, p_since timestamptz, p_model text, p_node text,
	p_text text, p_order text, p_tag text, p_account text)
returns table (place bigint, id bigint) language plpgsql stable rows 100 set plan_cache_mode to force_custom_plan as $$
declare
	is_reverse boolean := coalesce(starts_with(p_order, '-'), false);
	key text := case when is_reverse then substr(p_order, 2) else p_order end;
begin
	perform wlb_runs_check_key(key);
	return query with kept as (
		select r.id, case key when 'name' then r.job_name when 'user' then r.user_name when 'account' then r.account
				when 'state' then r.state end as name,
			case key when 'run' then r.id when 'submitted' then extract(epoch from wlb_moment(r.submitted_at))::float8
				when 'started' then extract(epoch from wlb_moment(r.started_at))::float8
				when 'ended' then extract(epoch from wlb_moment(r.ended_at))::float8
				when 'elapsed' then wlb_run_elapsed_s(r.started_at, r.ended_at)
				when 'step' then r.last_step when 'loss' then wlb_real(r.last_loss) when 'tokens' then wlb_whole(r.tokens)
				when 'tokens_per_s' then wlb_rate(r.tokens, r.step_seconds) when 'faults' then r.faults
				when 'attempts' then (select max(number) from attempts a where a.run_id = r.id)
				when 'nodes' then (select node_count from attempts a where a.run_id = r.id order by number desc limit 1)
				when 'memory' then (select memory_bytes from attempts a where a.run_id = r.id order by number desc limit 1)
				when 'mfu' then (select wlb_attempt_mfu(a.id, plan) from attempts a where a.run_id = r.id order by number desc limit 1)
			end as value
		from runs r where (p_uid is null or uid = p_uid) and (p_user is null or user_name = p_user) and (p_account is null or account = p_account)
			and (p_state is null or state = p_state) and (p_since is null or ended_at is null or ended_at >= p_since)
			and (p_text is null or strpos(lower(job_name), lower(p_text)) > 0)
			and (p_model is null or wlb_model_is_called(r.model, r.policy, p_model))
			and (p_tag is null or r.id in (select run_id from tags where tag = p_tag))
			and (p_node is null or exists (select from attempts a where a.run_id = r.id and p_node = any (nodes)))
	)
	select row_number() over (), ordered.id from (
		select kept.id from kept order by value * case when is_reverse then -1 else 1 end,
			case when not is_reverse then name end, case when is_reverse then name end desc nulls last, kept.id desc
		limit least(p_limit, 10000)) as ordered;
end $$;

-- Their list, as wlb_runs_chosen chooses them.
create function wlb_runs_json(p_uid bigint, p_user text, p_state text, p_limit bigint, p_since timestamptz default null,
	p_model text default null, p_node text default null, p_text text default null, p_order text default null, p_tag text default null,
	p_account text default null)
returns json language plpgsql stable as $$
begin
	return (with listed as (
		select s.*, page.place, r.alias, r.model, r.policy, r.seq_length_tokens, r.global_batch_size, last.id as attempt_id,
			last.step_of_attempt, last.memory_bytes, last.plan,
			sum(s.node_count) over before as names, sum(s.nodes_bytes) over before as names_bytes
		from wlb_runs_chosen(p_uid, p_user, p_state, p_limit, p_since, p_model, p_node, p_text, p_order, p_tag, p_account) as page
		join runs r on r.id = page.id join run_summary s on s.run_id = page.id
		left join lateral (select * from attempts a where a.run_id = page.id order by number desc limit 1) as last on true
		window before as (order by page.place)
	), told as materialized (
		select s.place, json_build_object('run_id', s.run, 'alias', s.alias, 'id', s.run_id,
			'job_id', s.job_id, 'job_name', s.job_name, 'user', s.user_name, 'account', s.account, 'gpu_count', s.gpu_count,
			'state', s.state, 'reason', s.reason,
			'submitted_at', wlb_time(s.submitted_at), 'started_at', wlb_time(s.started_at), 'ended_at', wlb_time(s.ended_at),
			'elapsed_s', wlb_run_elapsed_s(s.started_at, s.ended_at),
			'attempts', coalesce(s.attempts, 0),
			'nodes', case when s.names <= 1000000 and s.names_bytes <= 16 << 20 then coalesce(s.nodes, '{}') else '{}' end,
			'node_count', coalesce(s.node_count, 0), 'world_size', s.world_size,
			'layout', wlb_layout_json(s.tp, s.cp, s.pp, s.dp), 'steps_done', s.steps, 'last_step', s.last_step,
			'step_of_attempt', s.step_of_attempt,
			'train_iters', s.train_iters, 'first_loss', wlb_real(s.first_loss), 'last_loss', wlb_real(s.last_loss),
			'tokens', wlb_whole(s.tokens), 'tokens_per_s', s.tokens_per_s,
			'memory_bytes', s.memory_bytes, 'mfu', wlb_attempt_mfu(s.attempt_id, s.plan),
			'model_type', left(s.model->>'model_type', 256), 'parameters', wlb_part(s.model, 'parameters'),
			'model_path', left(s.policy->>'model', 4096), 'seq_length', s.seq_length_tokens, 'global_batch_size', s.global_batch_size,
			'faults', s.faults, 'tags', wlb_tags_json(s.run_id),
			'steps_missing', (select coalesce(sum(m.last_step - m.first_step + 1), 0) from wlb_steps_missing(s.run_id) m)) as entry
		from listed s
	), sized as (
		select place, entry, sum(octet_length(entry::text)) over (order by place) as bytes from told
	)
	select json_build_object('runs', coalesce(json_agg(entry order by place) filter (where bytes <= 24 << 20), '[]'),
		'left_out', count(*) filter (where bytes > 24 << 20)) from sized);
end $$;
