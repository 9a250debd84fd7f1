-- Names the calibration that a run is planned with, and adds the one that the user's runs were planned with before it, so
-- that the record of a plan says what has changed.
--
-- Replaces: function wlb_calibration_json.

create or replace function wlb_calibration_json(p_type text, p_ranks integer, p_uid bigint) returns json language sql stable as $$
	with judged as (
		select c.*, j.others >= 3 and j.factor <= 1.25 as agrees, j.others >= 3 and j.factor > 1.25 as outvoted
		from wlb_calibrations_newest(p_type, p_ranks) c,
			wlb_calibration_judge(p_type, p_ranks, c.uid, c.speeds) j
	), usable as (
		select *, case when is_admin then 'administrator' when uid = p_uid then 'own' else 'agreement' end as source
		from judged where not outvoted and (is_admin or uid = p_uid or agrees)
	), best as (
		select * from usable order by is_admin desc, uid = p_uid desc, id desc limit 1
	), before as (
		select c.id, c.machine from calibrations c, best
		where c.node_type = p_type and (p_ranks is null or c.ranks_per_node = p_ranks or p_type like 'gpu%')
			and c.id < best.id and (c.is_admin or c.uid in (p_uid, best.uid))
		order by c.is_admin desc, c.uid = p_uid desc, c.id desc limit 1
	)
	select json_build_object('node_type', p_type, 'calibrations', (select count(*) from judged),
		'outvoted', (select count(*) from judged where outvoted),
		'machine', (select machine from best), 'source', (select source from best),
		'uid', (select uid from best), 'at', (select extract(epoch from at) from best),
		'id', (select id from best), 'job_id', (select job_id from best),
		'before', (select json_build_object('id', id, 'machine', machine) from before))
$$;
