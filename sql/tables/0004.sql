-- What trainers that record nothing themselves say of their steps: docs/trainers.md.

-- A trainer that logs each tenth step has a row for ten of them.
alter table steps add column span_steps bigint not null default 1;
alter table steps_superseded add column span_steps bigint not null default 1;
comment on column steps.span_steps is 'steps that it stands for: itself, and those before it that were not logged';
comment on column steps_superseded.span_steps is 'steps that it stands for: itself, and those before it that were not logged';

alter table runs add column dropped_values bigint not null default 0;
comment on column runs.dropped_values is 'values not stored, since a run has at most 256 names of values, and 1,000,000 values of each';
alter table runs add column is_followed boolean not null default false;
comment on column runs.is_followed is 'what is recorded of its steps is what its trainer was heard to say, which may be little';
alter table attempts add column step_of_attempt bigint;
comment on column attempts.step_of_attempt is 'steps counted in it, where the trainer does not say its step''s number; null: none';

create table followed_names (
	run_id bigint not null references runs on delete cascade,
	name text not null,
	attempt_id bigint not null references attempts on delete cascade,
	stored bigint not null default 0,
	primary key (run_id, name)
);
create index on followed_names (attempt_id);
comment on table followed_names is 'Names of the values that trainers say, 256 of a run';
comment on column followed_names.run_id is 'the run''s id in runs';
comment on column followed_names.name is 'the name: loss, or as the trainer calls it';
comment on column followed_names.attempt_id is 'the newest attempt that has said it, its id in attempts';
comment on column followed_names.stored is 'rows in followed_values';

create table followed_values (
	attempt_id bigint not null references attempts on delete cascade,
	name text not null,
	is_of_attempt boolean not null,
	step bigint not null,
	value double precision not null,
	source smallint not null,
	stream integer not null,
	generation bigint not null,
	at bigint not null,
	primary key (attempt_id, name, is_of_attempt, step)
);
comment on table followed_values is 'Values that trainers say: of each value of a step, that of the first source';
comment on column followed_values.attempt_id is 'the attempt''s id in attempts';
comment on column followed_values.name is 'its name in followed_names';
comment on column followed_values.is_of_attempt is 'step was counted from the start of the attempt';
comment on column followed_values.step is 'number of the step';
comment on column followed_values.value is 'the value; may be NaN or infinite';
comment on column followed_values.source is '0 wlb.log or WLB_METRICS_FILE, 1 TensorBoard, 2 stdout, 3 hook';
comment on column followed_values.stream is 'which of the source''s files or ranks said it';
comment on column followed_values.generation is 'how often that file had been made anew';
comment on column followed_values.at is 'where in it, bytes';
