-- What Slurm says of the job of a run, beside its name.
alter table runs add column account text;
alter table runs add column gpu_count bigint;
comment on column runs.account is 'Slurm''s account, to which the job''s time is charged; null: it has none, or Slurm did not say';
comment on column runs.gpu_count is 'GPUs of the job, of Slurm''s GRES; null: it has none, or Slurm did not say';
