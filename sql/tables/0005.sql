-- Checkpoints that are written while training goes on.
alter table checkpoints add column stall_s double precision;
comment on column checkpoints.duration_s is 'time from its begin until it was durable, s';
comment on column checkpoints.stall_s is 'part of duration_s in which no step ran, s; null: all of it';

create or replace function wlb_checkpoint_added() returns trigger language plpgsql as $$
begin
	update attempts set checkpoint_seconds = checkpoint_seconds + wlb_seconds(coalesce(new.stall_s, new.duration_s))
	where id = new.attempt_id;
	return null;
end $$;
comment on column attempts.checkpoint_seconds is 'time in which its checkpoints stopped training, also those removed since, s';

alter table attempts add column saves_on_request boolean not null default false;
comment on column attempts.saves_on_request is 'its ranks save at SIGUSR2, as rank 0 has said';

alter table events add column save jsonb;
comment on column events.save is 'a save that the hook has seen: docs/api.md, records of type event; null: the event is of none';
create index on events (run_id, id) where save is not null;

create table evaluations (
	run_id bigint not null references runs on delete cascade,
	step bigint not null,
	attempt_id bigint not null references attempts on delete cascade,
	loss double precision,
	tokens bigint,
	duration_s double precision,
	recorded_at timestamptz not null,
	primary key (run_id, step)
);
create index on evaluations (attempt_id);
comment on table evaluations is 'The loss on documents that are not trained';
comment on column evaluations.run_id is 'the run''s id in runs';
comment on column evaluations.step is 'the last step of the weights that were evaluated';
comment on column evaluations.attempt_id is 'the attempt''s id in attempts: the last that evaluated them';
comment on column evaluations.loss is 'mean cross-entropy, nats a token; null: not finite';
comment on column evaluations.tokens is 'tokens that were evaluated';
comment on column evaluations.duration_s is 'time that it took, s';
comment on column evaluations.recorded_at is 'when it was done, by the clock of rank 0';
