-- The kinds of faults as rows, and with each fault what coordinator/wlbd/rules/cause.c has judged of it.

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

alter table faults
	add column is_loss boolean not null default false,
	add column sentence text not null default '',
	add column strength smallint,
	add column late interval not null default '0',
	add column follow interval,
	add column killed_at timestamptz,
	add column lost_from timestamptz;
comment on column faults.kind is 'its name in fault_kinds';
comment on column faults.proof is 'what wlbd knows of it: sql/tables/0002.sql has the keys';
comment on column faults.is_loss is 'as its kind says';
comment on column faults.sentence is 'what happened, in one line: the reason of an attempt of which it is the cause';
comment on column faults.strength is 'how surely it is the cause unless others explain it; 0: any other reason of the attempt says more; null: it never is';
comment on column faults.late is 'it may have happened so long before detected_at';
comment on column faults.follow is 'the end of a process that was killed at most so long after detected_at explains it; null: none does';
comment on column faults.killed_at is 'of a killed process whose end explains others: when it ended; -infinity: not known';
comment on column faults.lost_from is 'of a lost node: what is detected from then on may follow from its loss; -infinity: since ever';

-- Keys of `proof`, which is what the judgement rests on, where `evidence` is what clients reported:
--   exit_code    rank_lost: how its process ended, 128 + signal; absent if that was concluded from its connection
--   first        rank_lost: it ended before all others, as far as was known
--   alive_at     node_lost: when wlbd last knew that the node was alive, seconds since 1970
--   seen         node_lost: wlbd itself asked the node, which did not answer
--   job_unknown  node_lost: Slurm has not said to wlbd, since its start, that the node is the job's
--   job_over     node_lost: Slurm had said before the loss that the job has ended, or is unknown
--   after_end    node_lost: the node had ended its tasks
--   step_broken  step_failed: srun or a slurmstepd was killed
--   during       launcher_lost, script_lost: seconds since 1970; absent if the time is not known
--   evicted      wlbd ended the attempt because of it

-- The faults that are stored, by the rule of that time.
update faults f set is_loss = k.is_loss, late = case when kind = 'script_lost' then interval '3 s' else '0' end,
	strength = case when coalesce(proof ? 'after_end', false) then null when proof ? 'evicted' then 6
		when proof ? 'exit_code' then 4 + coalesce((proof->>'first')::boolean, false)::integer
		when kind = 'node_lost' then 3 when is_launcher or proof ? 'step_broken' then 2 when kind = 'step_failed' then 0 else 1 end,
	follow = case when (proof->>'exit_code')::integer in (137, 143) then interval '2 s' when proof ? 'exit_code' then '0' end,
	killed_at = case when is_launcher then coalesce(to_timestamp((proof->>'during')::float8), '-infinity')
		when proof ? 'step_broken' then detected_at end,
	lost_from = case when kind = 'node_lost' and not coalesce(proof ? 'after_end', false)
		then coalesce(to_timestamp((proof->>'alive_at')::float8) - interval '0.5 s', '-infinity') end,
	sentence = left(case
		when kind = 'node_lost' then coalesce('node ' || node, 'a node') || ' is lost'
		when kind = 'rank_lost' then format('rank %s on %s ', rank, node) || case
			when (proof->>'exit_code')::integer > 128 then format('was killed by signal %s', (proof->>'exit_code')::integer - 128)
			when proof ? 'exit_code' then format('ended with exit code %s', proof->>'exit_code') else 'is lost' end
		when kind = 'launcher_lost' then 'wlb run' || coalesce(' on ' || node, '') || ' was killed'
		when kind in ('script_lost', 'step_failed') then detail
		when proof ? 'evicted' then proof->>'evicted'
		else kind || coalesce(': ' || nullif(detail, ''), '') end, 4096)
from fault_kinds k where k.name = kind;

alter table faults drop constraint faults_kind_check;
alter table faults add constraint faults_kind_fkey foreign key (kind, is_loss) references fault_kinds (name, is_loss);
drop index faults_loss_once;
-- Launcher, ranks and wlbd may all tell of the same loss.
create unique index faults_loss_once on faults (attempt_id, kind, coalesce(node, ''), coalesce(rank, -1)) where is_loss;
