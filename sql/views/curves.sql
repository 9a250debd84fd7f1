-- What is drawn of a run's steps, and what trainers say beside them.

create view run_curves as
select r.name as run, r.id as run_id, s.step, a.number as attempt, s.loss, s.grad_norm, s.learning_rate, s.tokens,
	s.documents, s.step_time_s, s.tokens_per_s, s.held_tokens, s.predicted_imbalance, s.imbalance, s.parts, s.recorded_at, s.span_steps,
	s.loss_tokens, s.global_batch_size
from runs r cross join lateral wlb_sampled_steps(r.id, 2000) as s join attempts a on a.id = s.attempt_id;
comment on view run_curves is 'At most 2,000 steps of a run, evenly spaced from its first to its last: ask for one run';

create view run_values as
select r.name as run, r.id as run_id, f.name, a.number as attempt, v.step, v.is_of_attempt, v.value, wlb_source_name(v.source) as source
from followed_names f join runs r on r.id = f.run_id join attempts a on a.id = f.attempt_id
cross join lateral (select * from (
	(select * from followed_values where attempt_id = f.attempt_id and name = f.name and not is_of_attempt order by step desc limit 1)
	union all
	(select * from followed_values where attempt_id = f.attempt_id and name = f.name and is_of_attempt order by step desc limit 1)) as newest
	limit 1) as v;
comment on view run_values is 'The newest value of each name that the trainer of a run has said';
comment on column run_values.source is 'log, tensorboard, stdout or hook';
comment on column run_values.name is 'its name: loss, or as the trainer calls it';
