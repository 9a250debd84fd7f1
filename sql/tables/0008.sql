-- What Slurm says of the job of a run, beside its name.
alter table runs add column account text;
alter table runs add column gpu_count bigint;
comment on column runs.account is 'Slurm''s account, to which the job''s time is charged; null: it has none, or Slurm did not say';
comment on column runs.gpu_count is 'GPUs of the job, of Slurm''s GRES; null: it has none, or Slurm did not say';

-- When Slurm drained nodes, as wlbd saw it: beside what runs lost on them.
create table drains (
	id bigint generated always as identity primary key,
	node text not null,
	reason text not null default '',
	began_at timestamptz not null,
	ended_at timestamptz
);
create unique index on drains (node) where ended_at is null;
create index on drains (node, id);
comment on table drains is 'When Slurm drained nodes, as wlbd has seen it; of each node 100 times at most';
comment on column drains.id is 'key';
comment on column drains.node is 'name of the node';
comment on column drains.reason is 'why, as Slurm has it; empty: it has none';
comment on column drains.began_at is 'when the reason was set, or wlbd saw it first';
comment on column drains.ended_at is 'when wlbd saw that it is drained no longer; null: it is drained';

-- What a step trained beside its tokens. Of most steps both are null.
alter table steps add column loss_tokens bigint;
alter table steps add column global_batch_size bigint;
alter table steps_superseded add column loss_tokens bigint;
alter table steps_superseded add column global_batch_size bigint;
comment on column steps.loss_tokens is 'tokens whose loss counts; null: all';
comment on column steps.global_batch_size is 'sequences of the step in a ramp of the batch; null: as many as of the run';
comment on column steps_superseded.loss_tokens is 'tokens whose loss counts; null: all';
comment on column steps_superseded.global_batch_size is 'sequences of the step in a ramp of the batch; null: as many as of the run';
