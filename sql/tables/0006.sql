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
