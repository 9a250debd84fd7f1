-- What ranks do, as wlbd samples it (coordinator/wlbd/verdicts/rank_samples.c).

-- A sample of now. Of an attempt that has more than 1,000 the oldest are removed.
create function wlb_rank_sample_put(p_attempt bigint, p_late_s real[], p_work real[]) returns void language plpgsql as $$
begin
	insert into rank_samples (attempt_id, sampled_at, late_s, work)
	select id, now(), p_late_s, p_work from attempts where id = p_attempt
	on conflict do nothing;
	delete from rank_samples where attempt_id = p_attempt and sampled_at <= (
		select sampled_at from rank_samples where attempt_id = p_attempt order by sampled_at desc offset 1000 limit 1);
end $$;

-- How late ranks were at the end of a run: the means of the newest 20 samples of its newest attempt that has any, as rows of GET ranks; null
-- where there is none.
create function wlb_ranks_sampled_json(p_run bigint) returns json language plpgsql stable as $$
declare
	sampled bigint := (select max(a.id) from attempts a where a.run_id = p_run and exists (select from rank_samples where attempt_id = a.id));
begin
	return (with newest as (
		select late_s from rank_samples where attempt_id = sampled order by sampled_at desc limit 20
	), ranks as (
		select number - 1 as rank, round(avg(late) * 1000000) as late_us
		from newest cross join unnest(late_s) with ordinality as each (late, number) where number <= 65536 group by number
	), nodes as (
		select node, row_number() over (order by node) - 1 as index from (select distinct node from rank_map where attempt_id = sampled) as named
	)
	select json_build_object('nodes', (select coalesce(json_agg(node order by index), '[]') from nodes),
		'columns', json_build_array('rank', 'node', 'late_us'),
		'ranks', json_agg(json_build_array(ranks.rank, index, late_us) order by ranks.rank))
	from ranks left join rank_map m on m.attempt_id = sampled and m.rank = ranks.rank left join nodes using (node)
	having count(*) > 0);
end $$;
