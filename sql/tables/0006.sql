-- What each rank of an attempt did over its time, for pictures.

create table rank_samples (
	attempt_id bigint not null references attempts on delete cascade,
	sampled_at timestamptz not null,
	late_s real[] not null,
	work real[] not null,
	primary key (attempt_id, sampled_at)
);
comment on table rank_samples is 'Lateness and work of all ranks of an attempt from time to time, 1,000 samples of each attempt at most';
comment on column rank_samples.attempt_id is 'the attempt''s id in attempts';
comment on column rank_samples.sampled_at is 'when it was so';
comment on column rank_samples.late_s is
	'of each rank from 0 on: how much later than the other members of its communicators it enters calls, s; null: not known';
comment on column rank_samples.work is 'of each rank from 0 on: predicted for it in its step, in any unit; null: not known';
