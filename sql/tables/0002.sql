-- The kinds of faults as rows.

create table fault_kinds (
	name text primary key,
	is_loss boolean not null,
	is_process boolean not null,
	is_launcher boolean not null,
	unique (name, is_loss)
);
comment on table fault_kinds is 'The kinds of faults, as common/fault_kinds.c has them; a new one is inserted by a new file of sql/tables';
comment on column fault_kinds.name is 'its name, in records and replies too';
comment on column fault_kinds.is_loss is 'a process, a node or the step ended: an attempt has each loss once, whoever tells of it';
comment on column fault_kinds.is_process is 'a process ended: it was noticed when that happened';
comment on column fault_kinds.is_launcher is 'wlb run, or the script of its job: that says nothing of the program or of a node';
insert into fault_kinds (name, is_loss, is_process, is_launcher) values
	('rank_lost', true, true, false),
	('node_lost', true, false, false),
	('step_failed', true, false, false),
	('launcher_lost', true, true, true),
	('script_lost', true, true, true),
	('hang', false, false, false),
	('slow_rank', false, false, false),
	('slow_node', false, false, false),
	('slow_link', false, false, false),
	('slow_loader', false, false, false),
	('bad_values', false, false, false);

alter table faults add column is_loss boolean not null default false;
comment on column faults.kind is 'its name in fault_kinds';
comment on column faults.is_loss is 'as its kind says';
update faults set is_loss = k.is_loss from fault_kinds k where k.name = kind;

alter table faults drop constraint faults_kind_check;
alter table faults add constraint faults_kind_fkey foreign key (kind, is_loss) references fault_kinds (name, is_loss);
drop index faults_loss_once;
-- Launcher, ranks and wlbd may all tell of the same loss.
create unique index faults_loss_once on faults (attempt_id, kind, coalesce(node, ''), coalesce(rank, -1)) where is_loss;
