-- How often a run should save: by how often faults end attempts of its owner's runs, and by how long its saves stop training.

-- Seconds from one save to the next of which training loses least, sqrt(2 x stall x time between faults): the first order of Young (1974),
-- which is no longer than the time between faults where a save stops training for nearly as long (Daly, 2006). One save is in flight at
-- a time: so it is no shorter than a save takes until it is durable.
create function wlb_save_interval(p_stall_s float8, p_durable_s float8, p_fault_s float8) returns float8 language sql immutable as $$
	select greatest(least(sqrt(2 * p_stall_s * p_fault_s), p_fault_s), p_durable_s)
$$;

-- Seconds that saves cost from one fault to the next: their stalls, and the half of an interval that is done again after the fault.
create function wlb_save_cost(p_interval_s float8, p_stall_s float8, p_fault_s float8) returns float8 language sql immutable as $$
	select p_stall_s * p_fault_s / nullif(p_interval_s, 0) + p_interval_s / 2
$$;

-- Faults that ended attempts of the runs of a run's owner on its cluster, in the hours that their nodes trained: of the newest 10,000
-- attempts of the newest 1,000 runs. An attempt without a step counts for neither: no save would have helped it.
create function wlb_faults_met(p_run bigint, out faults bigint, out node_hours float8) language sql stable as $$
	with owned as (
		select r.id from runs r join runs this on this.id = p_run and r.uid = this.uid and r.cluster = this.cluster
		order by r.id desc limit 1000
	), tried as (
		select a.id, (a.step_seconds + a.repeated_seconds + a.checkpoint_seconds) * a.node_count as node_s
		from owned join attempts a on a.run_id = owned.id
		where a.step_seconds + a.repeated_seconds > 0 order by a.id desc limit 10000
	)
	select count(*) filter (where exists (select from faults f where f.attempt_id = tried.id and f.cause)),
		(sum(node_s) / 3600)::float8
	from tried
$$;

-- Medians over the newest 100 checkpoints of a run: for how long a save stopped training, took until it was durable, and came after the
-- one before it in its attempt.
create function wlb_saves_made(p_run bigint, out stall_s float8, out durable_s float8, out apart_s float8) language sql stable as $$
	with newest as (
		select coalesce(c.stall_s, c.duration_s) as stall, c.duration_s as durable,
			wlb_seconds_between(lag(wlb_moment(recorded_at)) over (partition by attempt_id order by recorded_at), wlb_moment(recorded_at)) as apart
		from (select * from checkpoints where run_id = p_run order by step desc, id desc limit 100) as c
	)
	select percentile_cont(0.5) within group (order by wlb_seconds(stall)::float8) filter (where stall is not null),
		percentile_cont(0.5) within group (order by wlb_seconds(durable)::float8) filter (where durable is not null),
		percentile_cont(0.5) within group (order by apart::float8) filter (where apart > 0)
	from newest
$$;

-- What docs/api.md calls save_interval; null where too little is known. With 5 faults the interval is wrong by a factor of 1.8 at most in
-- 95 of 100 cases, and what it costs then is 17 % above the least.
create function wlb_save_interval_json(p_run bigint) returns json language plpgsql stable set jit = off as $$
begin
	return (select json_build_object('interval_s', wlb_real(i.interval_s), 'interval_steps', greatest(round(i.interval_s / step_s), 1),
			'cost_s', wlb_real(i.cost_s), 'cost_steps', wlb_real(i.cost_s / step_s),
			'now_s', wlb_real(apart_s), 'now_cost_s', wlb_real(n.cost_s), 'now_cost_steps', wlb_real(n.cost_s / step_s),
			'stall_s', wlb_real(stall_s), 'fault_s', wlb_real(fault_s), 'faults', faults, 'node_hours', wlb_real(node_hours),
			'nodes', node_count)
		from (select id, node_count from attempts where run_id = p_run order by number desc limit 1) as last
		cross join wlb_faults_met(p_run) as met
		cross join wlb_saves_made(p_run) as made
		cross join lateral (select 3600 * node_hours / faults / nullif(node_count, 0) as fault_s, nullif(wlb_attempt_step_s(id), 0) as step_s
			where faults >= 5 and stall_s > 0 and node_hours > 0) as known
		cross join lateral (select wlb_save_interval(stall_s, durable_s, fault_s) as interval_s) as best
		cross join lateral (select interval_s, wlb_save_cost(interval_s, stall_s, fault_s) as cost_s) as i
		cross join lateral (select wlb_save_cost(apart_s, stall_s, fault_s) as cost_s) as n
		where fault_s > 0);
end $$;
