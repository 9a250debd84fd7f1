-- What wlb db prune removes: the details of runs that are over, and whole runs. Each call is a transaction that changes a bounded number
-- of rows of one run: no delivery waits for it for long, and what was done stays done when the command is killed. A call returns
-- "KIND ROWS", which it has removed, or null when nothing is left to do.

create function wlb_prune_rows_max() returns integer language sql immutable as $$ select 20000 $$;

-- About as many rows of a run are left in `steps`: as many points as a panel of a dashboard has.
create function wlb_prune_points() returns integer language sql immutable as $$ select 2000 $$;

-- The oldest run that ended before p_before; p_details: of those whose details are not removed, or that went on since. Locked, as a
-- delivery locks it; one that is locked is left for another time.
create function wlb_prune_next(p_before timestamptz, p_details boolean) returns runs language sql as $$
	select * from runs r where ended_at < p_before
		and not (p_details and exists (select from prunings p where p.run_id = r.id and p.done_at >= r.ended_at))
	order by ended_at, id limit 1 for no key update skip locked
$$;

-- Removes rows of a run ($1) from the first of these tables that has some. p_details: of what was said of steps that are also elsewhere or
-- were done again, an attempt's first and last stay: they say when it began and ended, and are shown as its newest values.
create function wlb_prune_tables(p_run bigint, p_tables text[], p_details boolean) returns text language plpgsql as $$
declare
	name text;
	which text;
	gone bigint;
begin
	foreach name in array p_tables loop
		which := case when name in ('rank_map', 'rank_samples', 'stacks', 'followed_values') then 't.attempt_id in (select id from attempts where run_id = $1)'
			else 't.run_id = $1' end
			|| case when p_details and name = 'followed_values' then ' and exists (select from followed_values o where o.attempt_id = t.attempt_id
				and o.name = t.name and o.is_of_attempt = t.is_of_attempt and o.step > t.step)'
			when p_details and name = 'steps_superseded' then ' and exists (select from steps_superseded o where o.attempt_id = t.attempt_id
				and o.step < t.step) and exists (select from steps_superseded o where o.attempt_id = t.attempt_id and o.step > t.step)'
			else '' end;
		execute format('delete from %I where ctid = any (array(select t.ctid from %1$I as t where %s limit $2))', name, which)
		using p_run, wlb_prune_rows_max();
		get diagnostics gone = row_count;
		if gone > 0 then
			return name || ' ' || gone;
		end if;
	end loop;
	return null;
end $$;

-- Of the steps of an attempt in a window of p_every numbers, one row is left: the last, with the means and with the number of steps that it
-- stands for. The first and the last step of an attempt stay as they are. Windows begin after p_after and end at p_to. Returns how many
-- rows are gone. Planned for the values given: a run may have two steps, or a million.
create function wlb_prune_roll_up(p_run bigint, p_after bigint, p_to bigint, p_every bigint) returns bigint language plpgsql
set plan_cache_mode = force_custom_plan set enable_seqscan = off as $$
declare
	gone bigint;
begin
	with edges as materialized (
		select unnest(array[(select min(step) from steps where attempt_id = a.id), (select max(step) from steps where attempt_id = a.id)]) as step
		from attempts a where a.run_id = p_run
	), slice as materialized (
		select * from steps where run_id = p_run and step > p_after and step <= p_to
			and step not in (select step from edges where step is not null)
	), rolled as (
		select max(step) as step, sum(span_steps) as span,
			sum(loss * span_steps) / sum(span_steps) filter (where loss is not null) as loss,
			sum(grad_norm * span_steps) / sum(span_steps) filter (where grad_norm is not null) as grad_norm,
			sum(learning_rate * span_steps) / sum(span_steps) filter (where learning_rate is not null) as learning_rate,
			round(sum(tokens * span_steps) / sum(span_steps) filter (where tokens is not null)) as tokens,
			round(sum(documents * span_steps) / sum(span_steps) filter (where documents is not null)) as documents,
			sum(step_time_s * span_steps) / sum(span_steps) filter (where step_time_s is not null) as step_time_s,
			sum(tokens_per_s * span_steps) / sum(span_steps) filter (where tokens_per_s is not null) as tokens_per_s,
			round(sum(held_tokens * span_steps) / sum(span_steps) filter (where held_tokens is not null)) as held_tokens,
			sum(predicted_imbalance * span_steps) / sum(span_steps) filter (where predicted_imbalance is not null) as predicted_imbalance,
			sum(imbalance * span_steps) / sum(span_steps) filter (where imbalance is not null) as imbalance,
			case when bool_or(loss_tokens is not null) then round(sum(coalesce(loss_tokens, tokens) * span_steps) / sum(span_steps)) end
				as loss_tokens
		from slice group by attempt_id, step / p_every
	), kept as (
		update steps s set loss = r.loss, grad_norm = r.grad_norm, learning_rate = r.learning_rate, tokens = r.tokens, documents = r.documents,
			step_time_s = r.step_time_s, tokens_per_s = r.tokens_per_s, held_tokens = r.held_tokens,
			predicted_imbalance = r.predicted_imbalance, imbalance = r.imbalance, parts = null, span_steps = r.span,
			loss_tokens = r.loss_tokens
		from rolled r where s.run_id = p_run and s.step = r.step
	)
	delete from steps s where s.run_id = p_run and s.step = any (array(
		select step from slice where step not in (select step from rolled)));
	get diagnostics gone = row_count;
	return gone;
end $$;

-- Rolls up the next steps of a run; null when all are. Windows are as long for all of a run, whichever call rolls them up.
create function wlb_prune_steps(r runs) returns text language plpgsql as $$
declare
	last bigint := (select max(step) from steps where run_id = r.id);
	first bigint := (select min(step) from steps where run_id = r.id);
	every bigint := (last - first) / wlb_prune_points() + 1;
	done_to bigint;
	gone bigint;
begin
	insert into prunings as p (run_id, rolled_to) values (r.id, 0)
	on conflict (run_id) do update set rolled_to = case when p.done_at is null then p.rolled_to else 0 end, done_at = null
	returning rolled_to into done_to;
	done_to := greatest(done_to, first - 1);
	while done_to < last loop
		gone := wlb_prune_roll_up(r.id, done_to, ((done_to + 1) / every + greatest(wlb_prune_rows_max() / every, 1)) * every - 1, every);
		done_to := ((done_to + 1) / every + greatest(wlb_prune_rows_max() / every, 1)) * every - 1;
		update prunings set rolled_to = done_to where run_id = r.id;
		if gone > 0 then
			return 'steps ' || gone;
		end if;
	end loop;
	return null;
end $$;

-- Of runs that ended before p_before: what ranks and other trainers said, steps that were done again; then steps are rolled up. Losses of
-- nodes and what else decisions rest on stays.
create function wlb_prune_details(p_before timestamptz) returns text language plpgsql as $$
declare
	r runs := wlb_prune_next(p_before, true);
	done text;
begin
	if r.id is null then
		return null;
	end if;
	done := coalesce(wlb_prune_tables(r.id, array['rank_map', 'rank_samples', 'stacks', 'followed_values', 'steps_superseded'], true), wlb_prune_steps(r));
	if done is null then
		update prunings set done_at = greatest(now(), r.ended_at) where run_id = r.id;
		done := 'details 1';
	end if;
	return done;
end $$;

-- Whole runs that ended before p_before. What a run has most of goes first, so that no transaction is long.
create function wlb_prune_runs(p_before timestamptz) returns text language plpgsql as $$
declare
	r runs := wlb_prune_next(p_before, false);
	done text;
begin
	if r.id is null then
		return null;
	end if;
	done := wlb_prune_tables(r.id, array['rank_map', 'rank_samples', 'stacks', 'followed_values', 'steps_superseded', 'steps'], false);
	if done is null then
		delete from runs where id = r.id;
		done := 'runs 1';
	end if;
	return done;
end $$;

-- "KIND ROWS" of what would be removed: runs, and runs whose details are.
create function wlb_prune_counts(p_runs_before timestamptz, p_details_before timestamptz) returns setof text language sql stable as $$
	select 'runs ' || count(*) from runs where ended_at < p_runs_before
	union all
	select 'details ' || count(*) from runs r where ended_at < p_details_before and ended_at >= coalesce(p_runs_before, '-infinity')
		and not exists (select from prunings p where p.run_id = r.id and p.done_at >= r.ended_at)
$$;
