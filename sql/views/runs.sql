-- Runs and their records, for SQL and Grafana. Views for queries by hand are named in wlbd(8).

create view run_summary as
select r.name as run, r.id as run_id, r.job_id, r.job_name, r.user_name, r.account, r.cluster, r.state, r.reason,
	r.submitted_at, r.started_at, r.ended_at,
	wlb_span(r.started_at, coalesce(r.ended_at, now())) as elapsed,
	last.number as attempts, last.nodes, last.node_count, last.world_size,
	last.tp, last.cp, last.pp, last.dp,
	r.steps, r.train_iters, r.last_step, r.tokens, wlb_rate(r.tokens, r.step_seconds) as tokens_per_s,
	r.first_loss, r.last_loss, r.steps_repeated, r.faults, last.nodes_bytes, r.gpu_count
from runs r
left join lateral (select * from attempts a where a.run_id = r.id order by number desc limit 1) last on true;
comment on view run_summary is 'Runs with the nodes and the layout of their newest attempt';
comment on column run_summary.state is 'starting, running, restarting, complete, failed, out_of_nodes or cancelled';
comment on column run_summary.reason is 'why it ended so; empty: complete, or not ended';
comment on column run_summary.elapsed is 'time from its start to its end, or now';
comment on column run_summary.attempts is 'number of its attempts';
comment on column run_summary.tokens_per_s is 'tokens in a second of its steps';

create view run_attempts as
select r.name as run, r.id as run_id, a.id as attempt_id, a.number as attempt, a.uuid, a.state,
	wlb_attempt_reason(a.state, a.reason, a.exit_code) as reason, a.nodes,
	a.node_count, a.spares, a.world_size, a.tp, a.cp, a.pp, a.dp, a.device, a.dtype,
	a.resumed_step, a.checkpoint_path, a.exit_code, a.new_steps,
	least((select min(step) from steps s where s.attempt_id = a.id),
		(select min(step) from steps_superseded s where s.attempt_id = a.id)) as first_step,
	greatest((select max(step) from steps s where s.attempt_id = a.id),
		(select max(step) from steps_superseded s where s.attempt_id = a.id)) as last_step,
	a.created_at, a.started_at, a.ended_at, a.plan, a.memory_bytes, a.gpus, a.nodes_bytes, a.step_of_attempt,
	a.saves_on_request
from attempts a join runs r on r.id = a.run_id;
comment on view run_attempts is 'Attempts of runs; each that has ended and is not complete has a reason';
comment on column run_attempts.first_step is 'first step that it recorded';
comment on column run_attempts.last_step is 'last step that it recorded';

create view run_steps as
select r.name as run, r.id as run_id, s.step, a.number as attempt, s.loss, s.grad_norm, s.learning_rate, s.tokens,
	s.documents, s.step_time_s, s.tokens_per_s, s.held_tokens, s.predicted_imbalance, s.imbalance, s.parts, s.recorded_at, s.span_steps,
	s.loss_tokens, s.global_batch_size
from steps s join runs r on r.id = s.run_id join attempts a on a.id = s.attempt_id;
comment on view run_steps is 'Every step of a run, exactly once';

create view run_steps_superseded as
select r.name as run, r.id as run_id, s.step, a.number as attempt, s.loss, s.step_time_s, s.recorded_at, s.superseded_at
from steps_superseded s join runs r on r.id = s.run_id join attempts a on a.id = s.attempt_id;
comment on view run_steps_superseded is 'Steps that a later attempt did again: the rows that they had before';

create view run_checkpoints as
select r.name as run, r.id as run_id, a.number as attempt, c.step, c.path, c.size_bytes, c.duration_s, c.stall_s, c.recorded_at
from checkpoints c join runs r on r.id = c.run_id join attempts a on a.id = c.attempt_id;
comment on view run_checkpoints is 'Checkpoints that runs have written';

create view run_evaluations as
select r.name as run, r.id as run_id, a.number as attempt, e.step, e.loss, e.tokens, e.duration_s, e.recorded_at
from evaluations e join runs r on r.id = e.run_id join attempts a on a.id = e.attempt_id;
comment on view run_evaluations is 'The loss of runs on documents that they do not train';

create view run_events as
select r.name as run, r.id as run_id, a.number as attempt, e.kind, e.detail, e.recorded_at
from events e join runs r on r.id = e.run_id left join attempts a on a.id = e.attempt_id;
comment on view run_events is 'What happened in runs besides faults';

create view run_ranks as
select r.name as run, r.id as run_id, a.number as attempt, m.rank, m.node, m.local_rank, m.device
from rank_map m join attempts a on a.id = m.attempt_id join runs r on r.id = a.run_id;
comment on view run_ranks is 'Where the ranks of attempts are';

create view run_rank_samples as
select r.name as run, r.id as run_id, a.number as attempt, s.sampled_at, s.late_s, s.work
from rank_samples s join attempts a on a.id = s.attempt_id join runs r on r.id = a.run_id;
comment on view run_rank_samples is 'Lateness and work of all ranks of an attempt, from time to time';
