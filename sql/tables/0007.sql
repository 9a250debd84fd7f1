-- The time of runs that are over, kept: a view of all runs reads it, where to compute it takes milliseconds a run.

create table run_times (
	run_id bigint primary key references runs on delete cascade,
	held_s numeric,
	effective_s numeric,
	detect_s numeric,
	decide_s numeric,
	start_s numeric,
	load_s numeric,
	repeated_s numeric,
	checkpoint_s numeric,
	idle_s numeric,
	other_s numeric,
	is_recorded boolean
);
comment on table run_times is 'The time of runs that are over, as wlb_run_time computes it; one that goes on has no row';
comment on column run_times.run_id is 'the run''s id in runs';
comment on column run_times.held_s is 'time that the run held its nodes, s; null within the transaction that changes it';
comment on column run_times.effective_s is 'of this, the time of steps that count, s';
comment on column run_times.detect_s is 'time from a fault until it was noticed, s';
comment on column run_times.decide_s is 'time from there until the next attempt, s';
comment on column run_times.start_s is 'time until the processes of attempts reported, s';
comment on column run_times.load_s is 'time from there to the first step of each attempt, s';
comment on column run_times.repeated_s is 'time of steps that were done again or lost, s';
comment on column run_times.checkpoint_s is 'time in which checkpoints stopped training, s';
comment on column run_times.idle_s is 'time of steps, for the share of the job''s ranks that had no work in them, s';
comment on column run_times.other_s is 'the rest of held_s, s';
comment on column run_times.is_recorded is 'false: its command records no steps, and what it did is in other_s';

-- What a transaction changes of a run that is over makes its row stale (held_s is null), and the row is computed once, before the
-- commit. A change of wlb_run_time itself needs a file of sql/tables that makes all rows stale.
create function wlb_run_time_stale(p_run bigint) returns void language sql as $$
	insert into run_times (run_id) select id from runs where id = p_run and ended_at is not null
	on conflict (run_id) do update set held_s = null where run_times.held_s is not null
$$;

create function wlb_run_changed() returns trigger language plpgsql as $$
begin
	if new.ended_at is null then
		delete from run_times where run_id = new.id;
	end if;
	perform wlb_run_time_stale(new.id);
	return null;
end $$;
create trigger runs_time_stale after update of created_at, submitted_at, started_at, ended_at, steps, faults, is_followed on runs
	for each row when (new.ended_at is not null or old.ended_at is not null) execute function wlb_run_changed();

create function wlb_of_run_changed() returns trigger language plpgsql as $$
begin
	perform wlb_run_time_stale(new.run_id);
	return null;
end $$;
-- The sums over steps change with those of the run.
create trigger attempts_time_stale after insert or update of state, world_size, resumed_step, decision, spares, held_nodes, created_at,
	started_at, reported_at, ended_at, checkpoint_seconds on attempts for each row execute function wlb_of_run_changed();
create trigger faults_time_stale after update of cause, proof, detected_at on faults
	for each row execute function wlb_of_run_changed();
create trigger verdicts_time_stale after insert or update of began_at, confirmed_at on verdicts
	for each row execute function wlb_of_run_changed();
create trigger queue_waits_time_stale after insert or update on queue_waits for each row execute function wlb_of_run_changed();
create trigger suspensions_time_stale after insert or update on suspensions for each row execute function wlb_of_run_changed();

create function wlb_run_time_keep() returns trigger language plpgsql as $$
begin
	update run_times k set (held_s, effective_s, detect_s, decide_s, start_s, load_s, repeated_s, checkpoint_s, idle_s, other_s, is_recorded)
		= (select held_s, effective_s, detect_s, decide_s, start_s, load_s, repeated_s, checkpoint_s, idle_s, other_s, is_recorded
			from wlb_run_time(k.run_id)) where run_id = new.run_id and held_s is null;
	return null;
end $$;
create constraint trigger run_times_keep after insert or update on run_times deferrable initially deferred
	for each row when (new.held_s is null) execute function wlb_run_time_keep();

insert into run_times (run_id) select id from runs where ended_at is not null;

-- A node's failed checks are few beside those that were ok.
create index on node_checks (node, checked_at) where failed <> '{}';

create table prunings (
	run_id bigint primary key references runs on delete cascade,
	rolled_to bigint not null default 0,
	done_at timestamptz
);
comment on table prunings is 'Runs of which wlb db prune has removed details';
comment on column prunings.run_id is 'the run''s id in runs';
comment on column prunings.rolled_to is 'steps up to this one are rolled up';
comment on column prunings.done_at is 'when it was done; null: it is not';
comment on column runs.steps is 'steps that are recorded: rows in steps, unless wlb db prune has rolled them up';
comment on column runs.steps_repeated is 'steps that were done again: rows in steps_superseded, unless wlb db prune has removed them';
comment on column steps.span_steps is 'steps that it stands for: itself, and those before it that were not logged or are rolled up';
