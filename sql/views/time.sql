-- The time that runs held their nodes, and where it went.

create view run_ettr as
select r.name as run, r.id as run_id, r.job_id, r.job_name, r.user_name, r.state, t.held_s,
	case when t.is_recorded then t.effective_s end as effective_s,
	case when t.is_recorded then t.held_s - t.effective_s end as lost_s,
	case when t.is_recorded then wlb_time_share(t.effective_s, t.held_s) end as ettr
from runs r cross join lateral wlb_run_time(r.id) as t;
comment on view run_ettr is 'Effective training time ratios; effective_s, lost_s and ettr are null for a run whose command records no steps';
comment on column run_ettr.held_s is 'time that the run held its nodes, s';
comment on column run_ettr.effective_s is 'of this, the time of steps that count, s';
comment on column run_ettr.lost_s is 'the rest, s';
comment on column run_ettr.ettr is 'effective_s / held_s';

create view run_time_lost as
select r.name as run, r.id as run_id, lost.cause, lost.seconds, wlb_time_share(lost.seconds, t.held_s) as share
from runs r cross join lateral wlb_run_time(r.id) as t
cross join lateral (values ('detect', t.detect_s), ('decide', t.decide_s), ('start', t.start_s), ('load', t.load_s),
	('repeated', t.repeated_s), ('checkpoint', t.checkpoint_s), ('idle', t.idle_s), ('other', t.other_s)
	) as lost (cause, seconds);
comment on view run_time_lost is 'Where the time went that runs lost';
comment on column run_time_lost.cause is 'detect, decide, start, load, repeated, checkpoint, idle or other';
comment on column run_time_lost.seconds is 'time lost by it, s';
comment on column run_time_lost.share is 'seconds / time held';
