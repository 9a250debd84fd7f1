-- Tags and notes, by which people find and describe runs.
create table tags (
	run_id bigint not null references runs on delete cascade,
	tag text collate "C" not null check (tag ~ '^[A-Za-z0-9][A-Za-z0-9._:/=+-]{0,63}$'),
	set_by text not null,
	set_at timestamptz not null default now(),
	primary key (run_id, tag)
);
create index on tags (tag, run_id);
comment on table tags is 'Tags of runs, 32 of each at most';
comment on column tags.run_id is 'the run''s id in runs';
comment on column tags.tag is 'the tag: letters, digits and ._:/=+-, at most 64';
comment on column tags.set_by is 'the account that set it';
comment on column tags.set_at is 'when it was set';

create table notes (
	run_id bigint not null references runs on delete cascade,
	number integer not null,
	note text not null check (note <> '' and octet_length(note) <= 4096),
	written_by text not null,
	written_at timestamptz not null default now(),
	primary key (run_id, number)
);
comment on table notes is 'Notes on runs, 100 of each at most';
comment on column notes.run_id is 'the run''s id in runs';
comment on column notes.number is 'its number in the run; 1 is the first';
comment on column notes.note is 'the text, 4,096 bytes at most';
comment on column notes.written_by is 'the account that wrote it';
comment on column notes.written_at is 'when it was written';

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

-- Of two wlbd that share the database one acts, and the other stands by.
create table coordinator (
	only_row boolean primary key default true check (only_row),
	term bigint not null default 0,
	beats bigint not null default 0,
	lease_ms integer not null default 0,
	backend_pid integer,
	address text not null default ''
);
insert into coordinator default values;
comment on table coordinator is 'Which wlbd acts, where `lease_ms` is set in wlbd.conf; one row';
comment on column coordinator.only_row is 'true: there is one row';
comment on column coordinator.term is 'how often a wlbd has begun or ended to act';
comment on column coordinator.beats is 'how often the wlbd that acts has renewed its lease in this term';
comment on column coordinator.lease_ms is 'how long it may act after it has asked for that, ms; 0: none acts';
comment on column coordinator.backend_pid is 'process of PostgreSQL that serves the session of its lease; null: none acts';
comment on column coordinator.address is 'where it listens, HOST:PORT; empty: none acts';
