alter table attempts add column goes_on boolean not null default false;
comment on column attempts.goes_on is 'its processes are not ended when one of them dies, as long as enough nodes are left';

-- What only the owner of a run, SlurmUser and root may read of an attempt: its command and the error of its ranks, which may hold
-- passwords. A role that may read all tables, as Grafana's, sees no row: row level security has no policy here, and exempts the owner
-- of the table alone. No view shows it.

create table attempt_outputs (
	attempt_id bigint primary key references attempts on delete cascade,
	command text not null default '',
	stdout_path text not null default '',
	stdout_offset bigint,
	stderr_path text not null default '',
	stderr_offset bigint,
	labelled boolean not null default false,
	error text not null default '',
	error_cause text not null default '',
	error_rank integer,
	error_follows boolean not null default false
);
alter table attempt_outputs enable row level security;
comment on table attempt_outputs is 'Commands, outputs and errors of attempts: for the owner of the run, SlurmUser and root; other roles see no row';
comment on column attempt_outputs.attempt_id is 'the attempt''s id in attempts';
comment on column attempt_outputs.command is 'the command as it was run, as a line for a shell; shortened where it is longer than 4,096 bytes';
comment on column attempt_outputs.stdout_path is 'the file of its standard output, with what srun replaces in it (%t, ...); empty: none, or not known';
comment on column attempt_outputs.stdout_offset is 'length of that file when the attempt began, bytes; null: not known';
comment on column attempt_outputs.stderr_path is 'the file of its standard error, likewise';
comment on column attempt_outputs.stderr_offset is 'length of that file when the attempt began, bytes; null: not known';
comment on column attempt_outputs.labelled is 'srun writes the rank before each line';
comment on column attempt_outputs.error is 'the line of the exception that was first; empty: none was found';
comment on column attempt_outputs.error_cause is 'of a chained exception the first one';
comment on column attempt_outputs.error_rank is 'the rank that has written it; null: not known';
comment on column attempt_outputs.error_follows is 'it follows from the end of another process, whose error was not found';
