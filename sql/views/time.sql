-- The time that runs held their nodes, and where it went.

-- The subquery is computed once a run (offset 0), and of a run whose time is kept it calls nothing.
create view run_times_all as
select r.name as run, r.id as run_id, (x.t).*
from runs r left join run_times k on k.run_id = r.id
cross join lateral (select case when k.held_s is not null then row(k.held_s, k.effective_s, k.detect_s, k.decide_s, k.start_s, k.load_s,
		k.repeated_s, k.checkpoint_s, k.idle_s, k.other_s, k.is_recorded)::wlb_run_seconds
	else wlb_run_time(r.id) end as t offset 0) as x;
comment on view run_times_all is 'The time that runs held their nodes, and its parts; of runs that go on until now';

create view run_ettr as
select r.name as run, r.id as run_id, r.job_id, r.job_name, r.user_name, r.account, r.state, t.held_s,
	case when t.is_recorded then t.effective_s end as effective_s,
	case when t.is_recorded then t.held_s - t.effective_s end as lost_s,
	case when t.is_recorded then wlb_time_share(t.effective_s, t.held_s) end as ettr
from runs r join run_times_all t on t.run_id = r.id;
comment on view run_ettr is 'Effective training time ratios; effective_s, lost_s and ettr are null for a run whose command records no steps';
comment on column run_ettr.held_s is 'time that the run held its nodes, s';
comment on column run_ettr.effective_s is 'of this, the time of steps that count, s';
comment on column run_ettr.lost_s is 'the rest, s';
comment on column run_ettr.ettr is 'effective_s / held_s';

create view run_time_lost as
select t.run, t.run_id, lost.cause, lost.seconds, wlb_time_share(lost.seconds, t.held_s) as share
from run_times_all as t
cross join lateral (values ('detect', t.detect_s), ('decide', t.decide_s), ('start', t.start_s), ('load', t.load_s),
	('repeated', t.repeated_s), ('checkpoint', t.checkpoint_s), ('idle', t.idle_s), ('other', t.other_s)
	) as lost (cause, seconds);
comment on view run_time_lost is 'Where the time went that runs lost';
comment on column run_time_lost.cause is 'detect, decide, start, load, repeated, checkpoint, idle or other';
comment on column run_time_lost.seconds is 'time lost by it, s';
comment on column run_time_lost.share is 'seconds / time held';
