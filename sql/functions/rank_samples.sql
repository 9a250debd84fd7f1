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
