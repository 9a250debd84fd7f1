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
