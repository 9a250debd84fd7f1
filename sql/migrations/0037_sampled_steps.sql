-- A graph of a long run needs some of its steps: a dashboard that reads 300,000 of them every ten seconds never ends.
--
-- Replaces: function wlb_steps_sample.

-- About p_points steps, evenly spaced from the first to the last, each found by the primary key: as fast for a long run
-- as for a short one. Several points may select the same step where steps are missing.
create function wlb_sampled_steps(p_run bigint, p_points bigint) returns setof steps language sql stable rows 1000 as $$
	with ends as (
		select min(step) as first, max(step) as last from steps where run_id = p_run
	), points as (
		select first + (last::numeric - first) * n / greatest(p_points - 1, 1) as at
		from ends, generate_series(0, p_points - 1) as n
	)
	select distinct on (s.step) s.* from points
	cross join lateral (select * from steps
		where run_id = p_run and step >= wlb_whole(floor(points.at)) order by step limit 1) as s
	order by s.step
$$;

create or replace function wlb_steps_sample(p_run bigint, p_points bigint) returns json language sql stable as $$
	select json_build_object('steps', coalesce(json_agg(wlb_step_json(s) order by s.step), '[]'), 'next', null)
	from wlb_sampled_steps(p_run, p_points) as found join run_steps s on s.run_id = p_run and s.step = found.step
$$;

-- For the steps of a time, of all runs: rows are added in the order of that time.
create index on steps using brin (recorded_at);
